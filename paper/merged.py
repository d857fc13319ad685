"""`reproduce merged`: all detectors of CIFAR-10 side by side, PT merged with RS, and the merged detector that is shipped.

PT merged with RS, the paper's future work, comes from the stored scores of the two detectors: no model is run. Some of
the held-out points rank the members' scores, others calibrate the merged score, so Theorem 1 holds. The same
p-values combined by Fisher's method, as if they were independent, show what goes wrong without that.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal import observed_band
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.merging import fisher_assuming_independence, twice_the_mean
from idecode_core.folder.record import read_split
from idecode_core.folder.shelf import ScoreSet
from idecode_core.folder.stored import Stored, open_all
from idecode_core.quality.methods import evaluate
from idecode_core.quality.metrics import false_detection_rate
from idecode_core.quality.strength import id_p_values
from idecode_core.report.tables import beside_the_paper, percent, table
from idecode_core.scorers.merged import merge_vectors
from paper.numbers import COMPARABLE, reported
from paper.results import Section
from paper.tables import N, precision_table, seeds, shared_sets

TARGETS = {"svhn": 98.5, "cifar100": 91, "tinyimagenet": 93, "places": 94}
"""AUROC that the project set itself for its best detector with labels."""
BESIDE_THE_PAPER = {
    "cifar10-rotations": "Without labels, as the paper's",
    "cifar10-merged": "With labels, which the paper's detector does not have",
}
EPSILONS = (0.05, 0.1, 0.2)


def best_reported(ood_set: str) -> float | None:
    """The paper's best AUROC at n=5 on this set, whichever its G; of Places365 only the sound one (App. C.1.6)."""
    dataset = ood_set.removesuffix("-test")
    kinds = ("rotations",) if dataset == "places" else ("projective", "rotations")
    numbers = [reported("cifar10", kind, ood_set, "iDECODe", N, "auroc") for kind in kinds]
    return max((number.mean for number in numbers if number), default=None)


def calibrating_rows(members: Sequence[Stored]) -> list[NDArray[np.bool_]]:
    """Of each member's calibration scores, those that calibrate the merged one: points that all members hold out, where each
    drew its own, else the second half. The others rank."""
    places = [member.folder / "split.npz" for member in members]
    if all(place.is_file() for place in places):
        held_out = [read_split(member.folder).calibration for member in members]
        common = reduce(np.intersect1d, held_out)
        if len(common) < min(map(len, held_out)):
            return [np.isin(points, common) for points in held_out]  # in one order, for a split is sorted
    return [np.arange(member.calibration.k) >= member.calibration.k // 2 for member in members]


def merge_stored(members: Sequence[Stored], name: str = "PT + RS") -> Stored:
    """The members as one detector, each with weight 1; all of them scored the same test points."""
    calibrate = calibrating_rows(members)
    references, calibrating = (
        [
            member.calibration.score_vectors[rows == which]
            for member, rows in zip(members, calibrate, strict=True)
        ]
        for which in (False, True)
    )
    weights = [1.0] * len(members)

    def merged_set(sets: Sequence[ScoreSet]) -> ScoreSet:
        draws = min(score_set.score_vectors.shape[1] for score_set in sets)
        vectors = merge_vectors(
            [score_set.score_vectors[:, :draws].astype(np.float64) for score_set in sets], references, weights
        )
        return replace(sets[0], score_vectors=vectors.astype(np.float32))

    calibration = Calibration(
        merge_vectors(calibrating, references, weights), members[0].calibration.seed
    ).rounded(np.float32)
    return Stored(
        replace(members[0].settings, folder=Path(name), name=name, k=calibration.k, scorer={}),
        calibration,
        merged_set([member.id_set for member in members]),
        [merged_set(sets) for sets in zip(*(member.ood_sets for member in members), strict=True)],
        None,
    )


def combined_rates(members: Sequence[Stored], together: Stored, n: int) -> str:
    """False detection rates of the members, of the merged score and of two ways to combine the members' p-values."""
    alone = np.stack([id_p_values(member, n) for member in members])  # (members, points)
    ways = {
        **{member.name.removeprefix("cifar10-"): p for member, p in zip(members, alone, strict=True)},
        f"{together.name}, calibrated": id_p_values(together, n),
        "twice the mean of the two p-values": twice_the_mean(alone.T),
        "Fisher, as if independent (**not valid**)": fisher_assuming_independence(alone.T),
    }
    rows = [
        [name, *(f"{100 * false_detection_rate(p, epsilon):.1f}" for epsilon in EPSILONS)]
        for name, p in ways.items()
    ]
    bands = [observed_band(together.calibration.k, epsilon, len(together.id_set)) for epsilon in EPSILONS]
    rows.append(
        ["exact 99 % band of the calibrated one", *(f"{100 * a:.1f} to {100 * b:.1f}" for a, b in bands)]
    )
    return table(
        [f"false detection rate in percent, n={n}", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)], rows
    )


def merged(root: Path | str = "checkpoints") -> Section:
    """Every detector of CIFAR-10 on every OOD set at n=5, the merged one beside the paper's best column."""
    detectors = open_all(root)
    by_transforms = [stored for stored in detectors if stored.transforms in ("projective", "rotations")]
    both = merge_stored(by_transforms) if len(by_transforms) == 2 else None
    if both:
        detectors.insert(2, both)
    rows, names = [], [stored.name for stored in detectors]
    pairs: dict[str, list[tuple[str, float, float]]] = {
        name: [] for name in BESIDE_THE_PAPER if name in names
    }
    for label, sets in shared_sets(detectors):
        values = [
            evaluate(stored.calibration, stored.id_set, ood_set, N).auroc
            for stored, ood_set in zip(detectors, sets, strict=True)
        ]
        dataset = sets[0].name.removesuffix("-test")
        best = best_reported(dataset)
        target = TARGETS.get(dataset)
        rows.append(
            [
                label,
                *map(percent, values),
                f"{target:g}" if target else "–",
                f"{best:.1f}" if best and dataset in COMPARABLE else "–",
            ]
        )
        if best:
            for name, each in pairs.items():
                each.append((label, 100 * values[names.index(name)].mean, best))
    titles = [name.removeprefix("cifar10-") for name in names]
    grid = table(["OOD set, AUROC at n=5", *titles, "our target", "paper's best"], rows)
    sources = "\n\n".join(seeds(stored) for stored in detectors if stored is not both)
    note = (
        "The merged detector (the paper's future work) sums -log of its members' ranks among held-out points and is "
        "calibrated on other ones, so Theorem 1 holds for it; `docs/merging.md` says how members "
        "and weights were chosen."
    )
    body = f"{note}\n\n{sources}\n\n{grid}\n\n{precision_table(detectors)}\n\n" + "\n\n".join(
        f"**{BESIDE_THE_PAPER[name]}** (`{name}`, AUROC at n=5, against the paper's best G): {beside_the_paper(each, 'AUROC')}"
        for name, each in pairs.items()
    )
    if both:
        body += (
            "\n\n**PT + RS** merges projective (PT) and rotations (RS), both without labels, from their stored scores: points "
            f"that both hold out for calibration calibrate it (k = {both.calibration.k:,}), their other ones rank. What merging does to false alarms on the iD test points:\n\n"
            f"{combined_rates(by_transforms, both, N)}"
        )
    return Section("merged", "All detectors of CIFAR-10, and the merged one", body)
