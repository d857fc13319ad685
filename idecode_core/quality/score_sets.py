"""Score a detector's test sets once, pictures or sounds, and store what every table needs beside it.

All scores of a set come from one pass through the model, SBP's from one more without transforms. What is stored is left
alone, so a stopped run goes on where it was.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError
from idecode_core.folder.detector import load_detector, scorer_hash
from idecode_core.folder.manifest import add_files
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import DRAWS_PER_RUN, RUNS, SBP, About, ScoreSet, stored_vectors, write_scores
from idecode_core.ncm import BASE_NCMS, softmax_baseline
from idecode_core.quality.sets import SetToScore, label
from idecode_core.scorer import NetworkScorer, Progress, Scorer, Vectors
from idecode_core.scorers.merged import MergedScorer

DRAWS = RUNS * DRAWS_PER_RUN
OWN = "own"  # the base NCM of a scorer that has several models, or none
Report = Callable[[str, int, int], None]
"""Called with (set, points done, points)."""


def score_test_sets(
    folder: Path | str,
    sets: Iterable[SetToScore],
    *,
    draws: int = DRAWS,
    ablations: Sequence[str] = (),
    without_familiarity: bool = False,
    members: Sequence[Path | str] = (),
    report: Report | None = None,
    detector: Detector | None = None,
) -> list[str]:
    """Score each set that is not stored yet, with the calibration's seed; gives the names of the test sets.

    `ablations` are other base NCMs that are stored too. `members` are folders whose stored scores a merged detector may
    use again. `detector` is the folder's own, where it has been loaded or made before.
    """
    folder = Path(folder)
    detector, identity = detector or load_detector(folder), read_settings(folder).scorer_sha256
    scorer, seed = detector.scorer, detector.calibration.seed
    draws = draws if detector.calibration.n_max > 1 else 1  # no random draws: others would be the same
    network = scorer if isinstance(scorer, NetworkScorer) else None
    own_ncm = network.base_ncm if network else OWN
    shelf = {own_ncm: ("", draws)}  # base NCM -> name of the scorer, and draws
    if without_familiarity:
        shelf[plain_ncm(own_ncm, folder)] = (plain_ncm(own_ncm, folder), draws)
    shelf |= {name: (name, DRAWS_PER_RUN) for name in ablations if name not in shelf}
    if network and network.classes:
        shelf[SBP] = (SBP, 1)
    done = []
    for test_set in sets:
        missing = {
            ncm: (name, n)
            for ncm, (name, n) in shelf.items()
            # the own scores of the calibration set have a file of their own
            if (name or not test_set.is_calibration)
            and stored_vectors(folder, test_set.name, (len(test_set), n), identity, name) is None
        }
        by_ncm: dict[str, NDArray[np.floating]] = {}
        if network and SBP in missing:
            by_ncm[SBP] = softmax_baseline(network.logits(test_set.points).double()).float().numpy()[:, None]
        if ncms := [ncm for ncm in missing if ncm != SBP]:
            n = max(missing[ncm][1] for ncm in ncms)
            progress = None if report is None else _counted(report, test_set)
            by_ncm |= score_under(scorer, ncms, test_set, n=n, seed=seed, members=members, progress=progress)
        for ncm, (name, n) in missing.items():
            scored = ScoreSet(test_set.name, label(test_set.name), test_set.is_ood, by_ncm[ncm][:, :n])
            write_scores(folder, scored, identity, name, about(ncm, scorer) if name else None)
        # also what a killed run wrote and did not list
        written = [folder / "scores" / name / f"{test_set.name}.npz" for name, _ in shelf.values()]
        add_files(folder, [path.relative_to(folder).as_posix() for path in written if path.is_file()])
        if not test_set.is_calibration:
            done.append(test_set.name)
    return done


def score_under(
    scorer: Scorer,
    base_ncms: Sequence[str],
    test_set: SetToScore,
    *,
    n: int,
    seed: int = 0,
    members: Sequence[Path | str] = (),
    progress: Progress | None = None,
) -> dict[str, Vectors]:
    """Score vectors (N, n) by base NCM; a merged scorer takes its members' from their folders where they are stored."""
    if isinstance(scorer, NetworkScorer):
        scored = scorer.score_under(base_ncms, test_set.points, n=n, seed=seed, progress=progress)
        return {name: under.score_vectors for name, under in scored.items()}
    if not isinstance(scorer, MergedScorer):
        return {OWN: scorer.score(test_set.points, n=n, seed=seed, progress=progress).score_vectors}
    parts = []
    for member in scorer.members:
        identity = scorer_hash(member)
        shape = (len(test_set), n)
        shelf = (stored_vectors(folder, test_set.name, shape, identity) for folder in members)
        stored = next((vectors for vectors in shelf if vectors is not None), None)
        if stored is None:
            parts.append(member.score(test_set.points, n=n, seed=seed, progress=progress).score_vectors)
        else:
            parts.append(stored.astype(np.float64))
    return {OWN: scorer.merge(parts)}


def about(base_ncm: str, scorer: Scorer) -> About:
    """What is said of a scorer that lies beside a detector's own, on its network."""
    labels = isinstance(scorer, NetworkScorer) and bool(scorer.classes)
    return (
        About("SBP", labels=labels) if base_ncm == SBP else About(base_ncm, base_ncm=base_ncm, labels=labels)
    )


def plain_ncm(base_ncm: str, folder: Path) -> str:
    """The base NCM less familiarity."""
    plain = base_ncm.removesuffix("_and_familiarity")
    if plain == base_ncm or plain not in BASE_NCMS:
        raise CheckpointError(f"{folder} does not use familiarity: there is nothing to leave out.")
    return plain


def _counted(report: Report, test_set: SetToScore) -> Progress:
    return lambda done: report(test_set.name, done, len(test_set))
