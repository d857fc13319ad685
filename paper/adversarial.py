"""`reproduce adversarial`: attacked pictures against iDECODe's detectors and the paper's rivals (Table 5), from stored scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from idecode_core.attacks.kinds import ATTACKS
from idecode_core.conformal.calibration import Calibration
from idecode_core.errors import CheckpointError
from idecode_core.folder.shelf import ScoreSet, open_scores, score_paths
from idecode_core.folder.stored import CLEAN, Stored, open_all
from idecode_core.quality.methods import Evaluation, compare, flagged_share, method_scores
from idecode_core.report.tables import percent, table
from paper.attack_sets import VictimRecord, place, read_records
from paper.numbers import reported_adversarial
from paper.results import Section

EPSILON = 0.05
RIVALS = {
    "kernel_density": "KD+PU",
    "lid": "LID",
    "mahalanobis_layers": "Mahalanobis",
    "odds": "Odds",
    "reconstruction": "AE",
}
"""Kind of scorer -> the paper's name. The first three have seen FGSM; the others have seen no attack."""
OURS = ((1, "ICAD"), (5, "iDECODe"), (20, "iDECODe"))


@dataclass(frozen=True)
class Row:
    """One detector against every attack on one victim; rates are 0 to 1."""

    title: str
    rival: bool
    evaluations: dict[str, Evaluation]
    flagged: dict[str, float]
    """By the name of the set, the clean pictures among them: the share with P < EPSILON."""
    printed: str
    """What the paper calls the same thing, where it prints numbers of it."""


def compared(
    title: str, calibration: Calibration, sets: dict[str, ScoreSet], n: int, method: str, printed: str
) -> Row:
    """AUROC of clean pictures against each attack, and what is flagged."""
    clean = sets[CLEAN].score_vectors
    known = method_scores(calibration, clean, n, method)
    attacked = {attack_of(name): part.score_vectors for name, part in sets.items() if part.is_ood}
    return Row(
        title,
        method == "base score",
        {
            name: compare(known, method_scores(calibration, vectors, n, method))
            for name, vectors in attacked.items()
        },
        {
            name: flagged_share(calibration, vectors, n, EPSILON)
            for name, vectors in {CLEAN: clean, **attacked}.items()
        },
        printed,
    )


def attack_of(set_name: str) -> str:
    """The attack that made a set.

    >>> attack_of("pgd-detector@cifar10-rotations")
    'pgd-detector'
    """
    return set_name.partition("@")[0]


def rival_rows(root: Path, victim: VictimRecord) -> list[Row]:
    """The rivals whose scores are there. They draw nothing, so one run says all."""
    rows = []
    for kind, name in RIVALS.items():
        if score_paths(place(root, victim.name), kind):
            scores = open_scores(place(root, victim.name), kind)
            rows.append(compared(name, scores.calibration, scores.sets, 1, "base score", name))
    return rows


def detector_rows(root: Path, victim: VictimRecord, detectors: Sequence[Stored]) -> list[Row]:
    """Each detector of ours with one draw, five and twenty."""
    rows = []
    for stored in detectors:
        if not score_paths(place(root, victim.name), stored.name):
            continue
        sets = open_scores(place(root, victim.name), stored.name, stored.settings.scorer_sha256).sets
        for n, method in OURS:
            name = "ICAD" if method == "ICAD" else f"iDECODe n={n}"
            rows.append(
                compared(
                    f"{stored.name.removeprefix('cifar10-')} {name.removeprefix('iDECODe ')}",
                    stored.calibration,
                    sets,
                    n,
                    method,
                    name if stored.transforms == "projective" else "",
                )
            )
    return rows


def attacks_of(rows: Sequence[Row]) -> list[str]:
    """The attacks that a row has, in the order of ATTACKS."""
    return [name for name in ATTACKS if any(name in row.evaluations for row in rows)]


def attack_tables(victim: VictimRecord, rows: Sequence[Row]) -> str:
    """AUROC, the paper's in brackets, then what is flagged; a column for each attack."""

    def area(row: Row, attack: str) -> str:
        if attack not in row.evaluations:
            return "–"
        theirs = reported_adversarial(row.printed, victim.paper_network, attack)
        return percent(row.evaluations[attack].auroc) + (f" ({theirs:.1f})" if theirs is not None else "")

    def flagged(row: Row, name: str) -> str:
        return f"{100 * row.flagged[name]:.1f}" if name in row.flagged else "–"

    attacks = attacks_of(rows)
    titles = [ATTACKS[name].title for name in attacks]
    areas = [[row.title, *(area(row, name) for name in attacks)] for row in rows]
    shares = [[row.title, *(flagged(row, name) for name in (CLEAN, *attacks))] for row in rows]
    counted = f"flagged at ε = {EPSILON:g}, percent"
    return f"{table(['AUROC', *titles], areas)}\n\n{table([counted, 'clean', *titles], shares)}"


def outcome_table(victim: VictimRecord) -> str:
    """How each attack went on all the pictures that it was run on."""
    rows = []
    for name, outcome in sorted(
        victim.outcomes.items(), key=lambda item: list(ATTACKS).index(attack_of(item[0]))
    ):
        _, _, detector = name.partition("@")
        title = f"PGD on {detector.removeprefix('cifar10-')}" if detector else ATTACKS[name].title
        hit = outcome.success
        sizes = (f"{np.mean(part[hit]):.3f}" if hit.any() else "–" for part in (outcome.l2, outcome.linf))
        in_tables = int(hit[: victim.scored].sum())
        rows.append([title, f"{len(hit):,}", f"{100 * hit.mean():.1f}", *sizes, f"{in_tables:,}"])
    return table(["attack", "pictures", "success rate, percent", "mean L2", "mean Linf", "scored"], rows)


def ahead(victim: VictimRecord, rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """The attacks on a victim for which a rival has the best AUROC, and those for which a detector of ours has it."""
    sides: tuple[list[str], list[str]] = ([], [])
    for attack in attacks_of([row for row in rows if row.rival]):
        means = {row.title: row.evaluations[attack].auroc.mean for row in rows if attack in row.evaluations}
        first, second = (
            max(
                (row.title for row in rows if row.rival is rival and row.title in means),
                key=means.__getitem__,
            )
            for rival in (True, False)
        )
        rival_wins = means[first] > means[second]
        best, other = (first, second) if rival_wins else (second, first)
        sides[not rival_wins].append(
            f"{ATTACKS[attack].title} on {victim.name} ({best} {100 * means[best]:.1f}, {other} {100 * means[other]:.1f})"
        )
    return sides


def verdict(pairs: Sequence[tuple[VictimRecord, Sequence[Row]]]) -> str:
    """Where rivals are ahead, said first."""
    sides = [ahead(victim, rows) for victim, rows in pairs]
    rivals, ours = ([words for side in sides for words in side[which]] for which in (0, 1))
    sentences = []
    if rivals:
        sentences.append(
            f"**A rival detects better than every detector of ours** (AUROC): {'; '.join(rivals)}."
        )
    if ours:
        sentences.append(f"A detector of ours is best: {'; '.join(ours)}.")
    return " ".join(sentences)


def adversarial(root: Path | str = "checkpoints") -> Section:
    """AUROC and flagged share of every attack, victim and detector, with the attack on the detector as the worst case."""
    root = Path(root)
    detectors, pairs = open_all(root), []
    for victim in read_records(root):
        rows = [*rival_rows(root, victim), *detector_rows(root, victim, detectors)]
        if {row.rival for row in rows} != {True, False}:
            raise CheckpointError(
                f"The scores of attacks on {victim.name} are not complete: expected those of rivals and of detectors. Go on with "
                "`python -m idecode_core paper score-sets attacks`."
            )
        pairs.append((victim, rows))
    attacked = any("@" in name for victim, _ in pairs for name in victim.outcomes)
    parts = [verdict(pairs), notes(widest([row for _, rows in pairs for row in rows])), worst_case(attacked)]
    for victim, rows in pairs:
        parts.append(
            f"### Attacks on {victim.name}\n\n{positives(victim)}\n\n{outcome_table(victim)}\n\n"
            f"{attack_tables(victim, rows)}"
        )
    return Section("adversarial", "Adversarial inputs (Table 5)", "\n\n".join(parts))


def widest(rows: Sequence[Row]) -> float:
    """Half the widest 95 % interval of an AUROC, in percent."""
    ends = (evaluation.interval for row in rows for evaluation in row.evaluations.values())
    return max(50 * (high - low) for low, high in ends)


def positives(victim: VictimRecord) -> str:
    """Which pictures are clean, exactly."""
    return (
        f"Victim: the classifier of `{victim.name}` ({victim.network}, test accuracy {100 * victim.accuracy:.1f} %). Clean "
        f"pictures: the first {victim.scored} of {len(victim.indices):,} pictures of CIFAR-10's test set that were chosen at random "
        "among those that it names right; their places are stored with the scores. Attacked pictures: of the same ones, those that "
        'the attack made it name wrong ("scored").'
    )


def notes(half: float) -> str:
    from paper.rivals.odds import SAMPLES  # brings torch, which no other table needs

    return (
        "Attacks are the paper's, with foolbox, in floats. In brackets: the paper's numbers, for ResNet-34 and DenseNet-100 (Table 5; "
        "iDECODe with projective transforms), where those of KD+PU, LID, Mahalanobis, Odds and AE are their authors'. **The paper's "
        "numbers for ICAD and iDECODe cannot be compared with ours:** the released code stores attacked pictures normalised and reads "
        "them as 8-bit values, so most pixels wrap around, and what is detected then is the wrapping. "
        f"Odds draws {SAMPLES} samples of each kind of noise, where its authors draw 256: a weaker Odds than theirs. "
        "KD+PU, LID and Mahalanobis have seen FGSM on other pictures; Odds and AE have seen no attack, and neither have our "
        "detectors, which do not look at the victim either (`invariance` contains the network of `cifar10-invariance`, "
        "which is one of the victims; `joint`, which is in `merged` too, was trained on from it). ± is over five runs of draws (25 draws of each picture are stored, so n=20 is one run); rivals draw nothing. "
        f"For the number of pictures, an AUROC is within {half:.1f} points or less of what endless pictures would give (95 %, DeLong)."
    )


def worst_case(attacked: bool) -> str:
    """What the attack on the detector itself shows, or that it was not run."""
    if not attacked:
        return (
            "**An attack on the detector itself is not in this table yet** (`attack-sets VICTIM --detector NAME`). The guarantee is about "
            "inputs that come as the calibration points came; it says nothing about inputs that somebody chose."
        )
    return (
        "**PGD on the detector is the worst case:** somebody who knows the victim and the detector of the row fools the first and "
        "keeps the score of the second low (rivals were not attacked so). The guarantee is about inputs that come as the calibration points came; it says nothing about inputs "
        "that somebody chose, and this column shows it."
    )
