"""A detector as its tables and pages see it: settings, calibration, stored scores, training record. No torch.

Stored scores are float32. The calibration that is read with them is rounded alike, here and nowhere else, so that what
was tied stays tied.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal.calibration import Calibration
from idecode_core.errors import CheckpointError
from idecode_core.folder.calibration import read_calibration
from idecode_core.folder.manifest import check_file, check_if_listed, check_parts, is_listed
from idecode_core.folder.scores import (
    ScoreSet,
    id_and_ood,
    in_order,
    read_score_file,
    read_softmax_scores,
    score_paths,
)
from idecode_core.folder.settings import FolderSettings, read_settings
from idecode_core.folder.training_record import TrainingRecord, read_training

CIFAR10_DETECTORS = (
    "cifar10-projective",
    "cifar10-rotations",
    "cifar10-invariance",
    "cifar10-merged",
    "cifar10-joint",
)


@dataclass(frozen=True, eq=False)
class Stored:
    """Everything in a detector folder but the weights."""

    settings: FolderSettings
    calibration: Calibration  # in the precision of the stored scores
    id_set: ScoreSet
    ood_sets: list[ScoreSet]
    training: TrainingRecord | None

    @property
    def name(self) -> str:
        return self.settings.folder.name

    @property
    def title(self) -> str:
        """What it is called in figures and tables, as a rival's scores have it too."""
        return self.settings.name

    @property
    def folder(self) -> Path:
        return self.settings.folder

    @cached_property
    def transforms(self) -> str:
        """The paper's name of G where M learned nothing but G, as the paper's did; "" for a merged detector, which has several,
        for a network that learned classes, and for sounds.

        Rotations are the same set however pictures are sampled.
        """
        scorer = self.settings.scorer
        if scorer.get("kind") != "image" or scorer.get("classes"):
            return ""
        return str(scorer.get("transforms", {}).get("name", "")).removeprefix("sharp_")

    def softmax_scores(self, name: str) -> NDArray[np.float64]:
        """SBP's scores of one of the sets."""
        check_if_listed(self.settings, f"softmax/{name}.npz")
        return read_softmax_scores(self.folder, name, self.settings.scorer_sha256)


def open_stored(folder: Path | str) -> Stored:
    """The stored numbers of one detector; refuses scores that were made with another scorer."""
    settings = read_settings(folder)
    check_parts(settings)
    finished = [path for path in score_paths(folder) if is_listed(settings, f"scores/{path.name}")]
    for path in finished:
        check_file(settings, f"scores/{path.name}")
    found = in_order(read_score_file(path, settings.scorer_sha256) for path in finished)
    known, outside = id_and_ood(found, str(folder))
    calibration = read_calibration(settings).rounded(known.score_vectors.dtype)
    return Stored(settings, calibration, known, outside, read_training(folder))


def has_scores(folder: Path | str) -> bool:
    return bool(score_paths(folder))


def open_all(root: Path | str, names: tuple[str, ...] = CIFAR10_DETECTORS) -> list[Stored]:
    """Those of `names` that are there with scores; at least one."""
    folders = [Path(root) / name for name in names]
    found = [
        open_stored(folder) for folder in folders if (folder / "config.json").exists() and has_scores(folder)
    ]
    if not found:
        raise CheckpointError(
            f"No detector with stored scores is in {root}: expected one of {', '.join(names)}. Train one with "
            "`python -m idecode_core train`, then `python -m idecode_core score-sets`."
        )
    return found
