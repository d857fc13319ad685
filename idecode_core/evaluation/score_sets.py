"""Score a detector's test sets once, pictures or sounds, and store what every table needs beside it.

All scores of a set come from one pass through the model, SBP's from one more without transforms. What is stored is left
alone, so a stopped run goes on where it was.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import CheckpointError
from idecode_core.evaluation.ablations import read_ablation, write_ablation
from idecode_core.evaluation.sets import SetToScore, label
from idecode_core.files import write_npz
from idecode_core.folder.detector import load_detector, scorer_hash
from idecode_core.folder.manifest import add_files
from idecode_core.folder.scores import (
    DRAWS_PER_RUN,
    RUNS,
    ScoreSet,
    read_score_file,
    read_softmax_scores,
    softmax_path,
    write_scores,
)
from idecode_core.folder.settings import read_settings
from idecode_core.merged import MergedScorer
from idecode_core.ncm import BASE_NCMS, softmax_baseline
from idecode_core.scorer import NetworkScorer, Progress, Scorer, Vectors

DRAWS = RUNS * DRAWS_PER_RUN
PLAIN = "plain"
"""Where the scores without familiarity lie in a detector folder."""
OWN = "own"  # the base NCM of a scorer that has several models, or none
Float32 = NDArray[np.float32]
Report = Callable[[str, int, int], None]
"""Called with (set, points done, points)."""


@dataclass(frozen=True)
class OwnScores:
    """`scores/<set>.npz`: five runs of 20 draws of each test set; the calibration set has a file of its own."""

    folder: Path
    identity: str  # of the scorer
    draws: int

    def has(self, one: SetToScore) -> bool:
        return one.is_calibration or self.read(one) is not None

    def read(self, one: SetToScore) -> Float32 | None:
        """The set as stored, if it was made with this scorer and has these sizes."""
        try:
            vectors = read_score_file(self.folder / "scores" / f"{one.name}.npz", self.identity).score_vectors
        except CheckpointError:
            return None  # not there, or of an earlier scorer: to be replaced
        return vectors if vectors.shape == (len(one), self.draws) else None

    def put(self, one: SetToScore, vectors: Float32) -> None:
        write_scores(self.folder, ScoreSet(one.name, label(one.name), one.is_ood, vectors), self.identity)


@dataclass(frozen=True)
class Ablation:
    """`ablations/<base NCM>.npz`: one run of 20 draws of every set."""

    folder: Path
    identity: str
    base_ncm: str
    draws: int = DRAWS_PER_RUN

    def has(self, one: SetToScore) -> bool:
        return len(self.read().get(one.name, ())) == len(one)

    def read(self) -> dict[str, Float32]:
        try:
            return read_ablation(self.folder, self.base_ncm, self.identity)
        except CheckpointError:
            return {}

    def put(self, one: SetToScore, vectors: Float32) -> None:
        write_ablation(self.folder, self.base_ncm, {**self.read(), one.name: vectors}, self.identity)


def score_test_sets(
    folder: Path | str,
    sets: Iterable[SetToScore],
    *,
    draws: int = DRAWS,
    ablations: Sequence[str] = (),
    without_familiarity: bool = False,
    members: Sequence[Path | str] = (),
    report: Report | None = None,
) -> list[str]:
    """Score each set that is not stored yet, with the calibration's seed; gives the names of the test sets.

    `ablations` are other base NCMs that are stored too. `members` are folders whose stored scores a merged detector may
    use again.
    """
    folder = Path(folder)
    detector, identity = load_detector(folder), read_settings(folder).scorer_sha256
    scorer, seed = detector.scorer, detector.calibration.seed
    draws = draws if detector.calibration.n_max > 1 else 1  # no random draws: others would be the same
    own = scorer.base_ncm if isinstance(scorer, NetworkScorer) else OWN
    shelves: dict[str, OwnScores | Ablation] = {own: OwnScores(folder, identity, draws)}
    if without_familiarity:
        shelves[plain_ncm(own, folder)] = OwnScores(folder / PLAIN, identity, draws)
    for name in ablations:
        shelves.setdefault(name, Ablation(folder, identity, name))
    done = []
    for one in sets:
        missing = {name: shelf for name, shelf in shelves.items() if not shelf.has(one)}
        if missing:
            n = max(shelf.draws for shelf in missing.values())
            progress = None if report is None else _counted(report, one)
            found = score_under(
                scorer, list(missing), one, n=n, seed=seed, members=members, progress=progress
            )
            for name, shelf in missing.items():
                shelf.put(one, found[name][:, : shelf.draws].astype(np.float32))
        if isinstance(scorer, NetworkScorer) and scorer.classes:
            store_softmax_scores(folder, scorer, one, identity)
        list_stored(folder, one, ablations)
        if not one.is_calibration:
            done.append(one.name)
    return done


def list_stored(folder: Path, one: SetToScore, ablations: Sequence[str]) -> None:
    """Put the files of a set that is complete into the folder's list: also those that a killed run wrote and did not list."""
    names = [f"{place}/{one.name}.npz" for place in ("scores", f"{PLAIN}/scores", "softmax")]
    names += [f"ablations/{name}.npz" for name in ablations]
    add_files(folder, [name for name in names if (folder / name).is_file()])


def score_under(
    scorer: Scorer,
    base_ncms: Sequence[str],
    one: SetToScore,
    *,
    n: int,
    seed: int = 0,
    members: Sequence[Path | str] = (),
    progress: Progress | None = None,
) -> dict[str, Vectors]:
    """Score vectors (N, n) by base NCM; a merged scorer takes its members' from their folders where they are stored."""
    if isinstance(scorer, NetworkScorer):
        scored = scorer.score_under(base_ncms, one.points, n=n, seed=seed, progress=progress)
        return {name: found.score_vectors for name, found in scored.items()}
    if not isinstance(scorer, MergedScorer):
        return {OWN: scorer.score(one.points, n=n, seed=seed, progress=progress).score_vectors}
    parts = []
    for member in scorer.members:
        identity = scorer_hash(member)
        shelves = (OwnScores(Path(folder), identity, n) for folder in members)
        stored = next((found for shelf in shelves if (found := shelf.read(one)) is not None), None)
        if stored is None:
            parts.append(member.score(one.points, n=n, seed=seed, progress=progress).score_vectors)
        else:
            parts.append(stored.astype(np.float64))
    return {OWN: scorer.merge(parts)}


def store_softmax_scores(folder: Path, scorer: NetworkScorer, one: SetToScore, identity: str) -> None:
    """SBP's scores of a set (N,) into `softmax/<set>.npz`, unless they are there."""
    try:
        if len(read_softmax_scores(folder, one.name, identity)) == len(one):
            return
    except CheckpointError:
        pass  # not there, or of an earlier scorer
    scores = softmax_baseline(scorer.logits(one.points).double()).float().numpy()
    write_npz(softmax_path(folder, one.name), {"scores": scores, "scorer": np.array(identity)})


def plain_ncm(base_ncm: str, folder: Path) -> str:
    """The base NCM less familiarity."""
    plain = base_ncm.removesuffix("_and_familiarity")
    if plain == base_ncm or plain not in BASE_NCMS:
        raise CheckpointError(f"{folder} does not use familiarity: there is nothing to leave out.")
    return plain


def _counted(report: Report, one: SetToScore) -> Progress:
    return lambda done: report(one.name, done, len(one))
