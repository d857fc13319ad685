"""How a detector's model came to be: training.json, and split.npz, the parts of the training set. No torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import CheckpointError
from idecode_core.files.read import read_arrays, read_json


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """What a card says about how the model came to be, for pictures and sounds alike.

    What a task does not have is None; fields with a default are not in the records of earlier versions.
    """

    recipe: str
    dataset: str
    task: str
    epochs: int
    best_epoch: int  # the one that was kept, counted from 1
    hours: float
    machine: str = "two CPU cores (shared with other work)"
    training_accuracy: float | None = None  # of the kept epoch, on the examples as they were shown
    validation_loss: float | None
    validation_accuracy: float | None
    calibration_accuracy: float | None = None
    test_accuracy: float | None
    proper_training_points: int
    validation_points: int
    calibration_points: int
    test_points: int = 0
    seed: int
    settings: dict[str, Any]
    """The recipe's fields, flat and JSON-ready."""


@dataclass(frozen=True)
class Split:
    """Indices of the parts of a training set: proper training (with a validation part taken out of it) and calibration."""

    proper: NDArray[np.int64]
    validation: NDArray[np.int64]
    calibration: NDArray[np.int64]

    @property
    def points(self) -> int:
        return sum(map(len, vars(self).values()))


def same_split(a: Split, b: Split) -> bool:
    return all(np.array_equal(vars(a)[name], vars(b)[name]) for name in vars(a))


def split_indices(size: int, *, seed: int, calibration: float = 0.1, validation: float = 0.05) -> Split:
    """Random 90/10 split (App. C.1.1); the validation part comes out of the proper training set."""
    order = np.random.default_rng(seed).permutation(size)
    k = round(size * calibration)
    v = round((size - k) * validation)
    return Split(np.sort(order[k + v :]), np.sort(order[k : k + v]), np.sort(order[:k]))


def read_split(folder: Path) -> Split:
    """The indices that a run stored when it began; a detector folder has them too."""
    arrays = read_arrays(
        folder / "split.npz",
        ("proper", "validation", "calibration"),
        what="the split of a training run",
        error=CheckpointError,
        hint="Train again with --no-resume.",
    )
    return Split(*(arrays[name].astype(np.int64) for name in ("proper", "validation", "calibration")))


def read_training(folder: Path | str) -> TrainingRecord | None:
    """training.json of a detector folder; None where there is none (merged detectors, detectors of your own)."""
    path = Path(folder) / "training.json"
    if not path.exists():
        return None
    found = read_json(path, what="a training record", error=CheckpointError, hint="Train again.")
    try:
        return TrainingRecord(**found)
    except TypeError as error:
        raise CheckpointError(f"{path} cannot be read as a training record: {error}. Train again.") from error
