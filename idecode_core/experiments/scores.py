"""Score the iD test set and each OOD set with a detector, once, and store the score vectors beside it.

Everything published about a detector follows from these files (`evaluation`), so no table needs the model again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.checkpoint import load_detector, read_config, scorer_hash
from idecode_core.data import TEST_SETS, ImageSet, load_images
from idecode_core.errors import CheckpointError, DataError
from idecode_core.evaluation import (
    DRAWS_PER_RUN,
    RUNS,
    ScoreSet,
    read_score_file,
    write_scores,
)
from idecode_core.merged import MergedScorer
from idecode_core.one_pass import score_in_one_pass
from idecode_core.scoring import ImageScorer, Scorer

DRAWS = RUNS * DRAWS_PER_RUN
ID_POINTS, OOD_POINTS = 2000, 1000
DEVELOPMENT = slice(400, 700)
"""Which places of a test set's random order are for choosing, and so are never in a table (`development`)."""
LABELS = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "svhn": "SVHN",
    "tinyimagenet": "Tiny-ImageNet",
    "isun": "iSUN",
    "places": "Places",
    "lsunproxy": "LSUN proxy",
    "lsun": "LSUN",
    "places365": "Places365",
    "fashion": "Fashion-MNIST",
    "digits": "Handwritten digits",
    "photos": "Photographs",
    "textures": "Textures",
}
Report = Callable[[str, int, int], None]
"""Called with (set, points done, points)."""


@dataclass(frozen=True)
class SetToScore:
    """A set to score: the dataset's name in the data root, and whether it is OOD for the detector."""

    name: str
    is_ood: bool

    @property
    def label(self) -> str:
        dataset = self.name.rsplit("-", 1)[0]
        return LABELS.get(dataset, dataset)


def sets_to_score(dataset: str) -> list[SetToScore]:
    """The iD test set of a detector for `dataset`, then the OOD sets of its tables."""
    if dataset.startswith("fashion"):
        outside = ["digits-sample", "photos-sample", "textures-sample", "cifar10-test", "svhn-test"]
        return [SetToScore("fashion-test", False), *(SetToScore(name, True) for name in outside)]
    others = ["cifar10", *TEST_SETS] if dataset != "cifar10" else list(TEST_SETS)
    outside = [f"{name}-test" for name in others if name != dataset]
    return [SetToScore(f"{dataset}-test", False), *(SetToScore(name, True) for name in outside)]


def pick(images: ImageSet, count: int, seed: int = 0) -> ImageSet:
    """`count` points chosen at random by the seed, in the set's own order; all of them when there are fewer.

    Points in the places of DEVELOPMENT are left out.
    """
    if len(images) <= count:
        return images
    order = random_order(images, seed)
    chosen = np.concatenate([order[: DEVELOPMENT.start], order[DEVELOPMENT.stop :]])[:count]
    return images.take(np.sort(chosen))


def random_order(images: ImageSet, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng([seed, len(images)]).permutation(len(images))


def score_test_sets(
    folder: Path | str,
    dataset: str,
    *,
    data_root: Path | str | None = None,
    id_points: int = ID_POINTS,
    ood_points: int = OOD_POINTS,
    draws: int = DRAWS,
    seed: int = 0,
    members: Sequence[Path | str] = (),
    report: Report | None = None,
) -> list[ScoreSet]:
    """Score every set that is not stored yet with this scorer; a stopped run goes on where it was.

    A set that is not in the data root is left out, except for the iD test set. `members` are folders whose stored
    scores may be reused by a merged detector.
    """
    folder = Path(folder)
    detector = load_detector(folder)
    identity = str(read_config(folder)["scorer_sha256"])
    done: list[ScoreSet] = []
    for test_set in sets_to_score(dataset):
        try:
            images = pick(load_images(test_set.name, data_root), ood_points if test_set.is_ood else id_points)
        except DataError:
            if not test_set.is_ood:
                raise
            continue
        stored = stored_scores(folder, test_set.name, identity, len(images), draws)
        if stored is None:
            vectors = score_points(
                detector.scorer, images, draws, seed=seed, members=members, report=report, name=test_set.name
            )
            stored = ScoreSet(test_set.name, test_set.label, test_set.is_ood, vectors.astype(np.float32))
            write_scores(folder, stored, identity)
        done.append(stored)
    return done


def stored_scores(folder: Path | str, name: str, identity: str, points: int, draws: int) -> ScoreSet | None:
    """The set as stored in a folder, if it is there, was made with this scorer and has these sizes."""
    path = Path(folder) / "scores" / f"{name}.npz"
    if not path.exists():
        return None
    try:
        stored = read_score_file(path, identity)
    except CheckpointError:
        return None  # of an earlier scorer: to be replaced
    return stored if stored.score_vectors.shape == (points, draws) else None


def score_points(
    scorer: Scorer,
    images: ImageSet,
    draws: int,
    *,
    seed: int = 0,
    members: Sequence[Path | str] = (),
    report: Report | None = None,
    name: str = "",
) -> NDArray[np.float64]:
    """Score vectors (N, draws); a merged scorer takes its members' from their folders where they are stored."""

    def progress(done: int) -> None:
        if report is not None:
            report(name, done, len(images))

    if isinstance(scorer, MergedScorer):
        parts = []
        for member in scorer.members:
            identity = scorer_hash(member)
            found = (stored_scores(folder, name, identity, len(images), draws) for folder in members)
            stored = next((score_set for score_set in found if score_set is not None), None)
            if stored is not None:
                parts.append(stored.score_vectors.astype(np.float64))
            else:
                parts.append(score_points(member, images, draws, seed=seed, report=report, name=name))
        return scorer.merge(parts)
    if isinstance(scorer, ImageScorer):
        return score_in_one_pass(scorer, images.x, [scorer.base_ncm], n=draws, seed=seed, progress=progress)[
            scorer.base_ncm
        ]
    return scorer.score(images.x, n=draws, seed=seed, progress=progress).score_vectors
