"""How a detector's model came to be: training.json, log.jsonl, split.npz with the parts of the training set, and files.csv with those
of a user's own files. No torch."""

import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import CheckpointError, InputError
from idecode_core.files import write_text
from idecode_core.files.read import DAMAGE, read_arrays, read_json, reason, regular_size

LOG, FILES = "log.jsonl", "files.csv"
MODEL_PARTS = ("proper", "validation")
"""Parts of a user's own files that the model was made of, so that they are no longer new to it."""


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


def split_indices(size: int, *, seed: int) -> Split:
    """Random 90/10 split (App. C.1.1); the validation part, 5 %, comes out of the proper training set."""
    order = np.random.default_rng(seed).permutation(size)
    k = round(size * 0.1)
    v = round((size - k) * 0.05)
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
    fields = read_json(path, what="a training record", error=CheckpointError, hint="Train again.")
    try:
        return TrainingRecord(**fields)
    except TypeError as error:
        raise CheckpointError(f"{path} cannot be read as a training record: {error}. Train again.") from error


@dataclass(frozen=True)
class EpochLog:
    """One line of a run's log; rates and losses that a task does not have are None."""

    epoch: int
    loss: float
    seconds: float
    accuracy: float | None = None  # on the training examples, as they were shown
    validation_loss: float | None = None
    validation_accuracy: float | None = None


def read_log(folder: Path) -> list[EpochLog]:
    path = folder / LOG
    try:
        regular_size(path)
        log = [EpochLog(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
        if not log:
            raise ValueError("it is empty")
        return log
    except DAMAGE as error:
        raise CheckpointError(
            f"{path} cannot be read as the log of a training run: {reason(error)}. Train again with --no-resume."
        ) from error


def write_log(folder: Path, log: Sequence[EpochLog]) -> None:
    write_text(folder / LOG, "".join(json.dumps(vars(entry)) + "\n" for entry in log))


def kept_epoch(log: Sequence[EpochLog]) -> EpochLog:
    """The epoch whose weights are kept: the lowest validation loss, or the last one where there is no validation part."""
    losses = [
        (entry.validation_loss, -entry.epoch, entry) for entry in log if entry.validation_loss is not None
    ]
    return min(losses)[2] if losses else log[-1]


def _listed(folder: Path) -> list[tuple[str, str, str]]:
    """Content hash, part and class of each file that a detector was made of; empty where no list says so."""
    path = folder / FILES
    if not path.exists():
        return []
    try:
        regular_size(path)
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as lines:
            return [(row["content"], row["part"], row.get("label") or "") for row in csv.DictReader(lines)]
    except (*DAMAGE, csv.Error) as error:
        raise CheckpointError(
            f"{path} cannot be read as the list of a detector's files: {reason(error)}. Use the folder as it was saved."
        ) from error


def parts_by_content(folder: Path) -> dict[str, str]:
    """Content hash -> part of each file; empty where no list says so."""
    return {content: part for content, part, _ in _listed(folder)}


def labels_by_part(folder: Path) -> dict[str, list[str]]:
    """Part -> the class of each of its files, in the order of the part; empty where no list says so."""
    labels: dict[str, list[str]] = {}
    for _, part, label in _listed(folder):
        labels.setdefault(part, []).append(label)
    return labels


def refuse_files_of(
    name: str, parts: Mapping[str, str], contents: Sequence[str], source: str, refused: Sequence[str]
) -> None:
    """InputError where some of these contents lie in parts of a detector's own files that must be new to it."""
    counts = Counter(parts[content] for content in contents if parts.get(content) in refused)
    if counts:
        shares = " and ".join(f"{count:,} in its part {part}" for part, count in counts.items())
        raise InputError(
            f"{source}: {counts.total():,} of {len(contents):,} files are among those that {name} was made of ({shares}): expected "
            "files that are new to it, because others look less strange than they should. Leave them out (`files.csv` in its "
            "folder lists them), or add --allow-training-files."
        )
