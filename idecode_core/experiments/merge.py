"""Build a merged detector from trained ones, so that Theorem 1 holds for it.

References (the points that members' scores are ranked among) are the validation part, which is neither calibration
nor test; the merged scores are calibrated on the members' held-out points. Members must have the same split.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.calibration import Calibration
from idecode_core.checkpoint import load_detector
from idecode_core.data import ImageSet, Split, load_images
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, SettingError
from idecode_core.merged import MergedScorer
from idecode_core.ncm import BASE_NCMS
from idecode_core.one_pass import score_in_one_pass
from idecode_core.recipes import get_recipe
from idecode_core.scoring import ImageScorer
from idecode_core.training_finish import calibration_indices, read_split, read_training

REFERENCE_DRAWS = 10
N_MAX = 20


@dataclass(frozen=True)
class Member:
    """A trained detector's folder, the base NCM to read its model with, and its weight in the sum."""

    folder: Path
    base_ncm: str
    weight: float

    @staticmethod
    def parse(text: str, weight: float = 1.0) -> "Member":
        """ "checkpoints/cifar10-invariance@label_cross_entropy"; without "@" the detector's own base NCM."""
        folder, _, base_ncm = text.partition("@")
        if base_ncm and base_ncm not in BASE_NCMS:
            raise SettingError(f"No base NCM is called {base_ncm!r}; expected one of {', '.join(BASE_NCMS)}.")
        return Member(Path(folder), base_ncm, weight)

    def scorer(self) -> ImageScorer:
        scorer = load_detector(self.folder).scorer
        if not isinstance(scorer, ImageScorer):
            raise SettingError(
                f"{self.folder} cannot be a member: expected a detector with one model for images."
            )
        return replace(scorer, base_ncm=self.base_ncm or scorer.base_ncm)

    @property
    def name(self) -> str:
        return f"{self.folder.name}@{self.base_ncm}" if self.base_ncm else self.folder.name


def shared_split(folders: Sequence[Path]) -> Split:
    """The one split of all members; a point that one of them was fitted to must not calibrate the merged detector."""
    splits = [read_split(folder) for folder in folders]
    for folder, split in zip(folders[1:], splits[1:], strict=True):
        same = all(
            np.array_equal(a, b) for a, b in zip(vars(splits[0]).values(), vars(split).values(), strict=True)
        )
        if not same:
            raise CheckpointError(
                f"{folders[0]} and {folder} were trained on different splits, so no points are held out from both: "
                "train both with the same dataset and seed."
            )
    return splits[0]


def member_images(folders: Sequence[Path], data_root: Path | str | None = None) -> tuple[ImageSet, ImageSet]:
    """Reference images (validation part) and calibration images of members that share a split."""
    split = shared_split(folders)
    record = read_training(folders[0])
    if record is None:
        raise CheckpointError(
            f"{folders[0]} has no training.json: expected a detector that `train` has written."
        )
    images = load_images(f"{record.dataset}-train", data_root)
    classes = get_recipe(record.recipe).classes
    images = images.only(classes) if classes else images
    return images.take(split.validation), images.take(calibration_indices(split))


def build_merged(
    members: Sequence[Member],
    *,
    data_root: Path | str | None = None,
    name: str = "cifar10-merged",
    seed: int = 0,
    n_max: int = N_MAX,
    progress: Callable[[str, int, int], None] | None = None,
) -> Detector:
    """Score references and calibration points with every member, merge, calibrate.

    Members that share a folder share one pass through its model. `progress` gets (member, points done, points).
    """
    if not members:
        raise SettingError("A merged detector needs at least one member, got none.")
    folders = list(dict.fromkeys(member.folder for member in members))
    references, calibration = member_images(folders, data_root)
    scorers = [member.scorer() for member in members]
    reference_vectors: dict[int, NDArray[np.float64]] = {}
    calibration_vectors: dict[int, NDArray[np.float64]] = {}
    for folder in folders:
        places = [i for i, member in enumerate(members) if member.folder == folder]
        ncms = [scorers[i].base_ncm for i in places]
        for images, n, found in (
            (references, REFERENCE_DRAWS, reference_vectors),
            (calibration, n_max, calibration_vectors),
        ):
            report = None if progress is None else _reporter(progress, folder.name, len(images))
            vectors = score_in_one_pass(scorers[places[0]], images.x, ncms, n=n, seed=seed, progress=report)
            found.update({i: vectors[scorers[i].base_ncm] for i in places})
    merged = MergedScorer(
        tuple(scorers),
        tuple(member.name for member in members),
        tuple(reference_vectors[i] for i in range(len(members))),
        tuple(member.weight for member in members),
    )
    merged_vectors = merged.merge([calibration_vectors[i] for i in range(len(members))])
    summary = load_detector(folders[0]).summary
    return Detector(name, merged, Calibration(merged_vectors, seed), summary)


def _reporter(progress: Callable[[str, int, int], None], name: str, total: int) -> Callable[[int], None]:
    return lambda done: progress(name, done, total)
