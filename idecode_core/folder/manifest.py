"""What belongs together in a detector folder: config.json lists the content hash of every file that counts.

The scorer's own hash ties weights and settings (`detector`); this ties calibration, split, training record and stored
scores to them. A file that changed after saving is refused; one that is not listed was never finished and is not read.

calibration.npz: the score vectors of the calibration set, tied by hash to the scorer that made them.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from idecode_core.errors import CheckpointError, IdecodeError
from idecode_core.files import write_json, write_npz
from idecode_core.files.read import read_arrays, read_json, reason, regular_size
from idecode_core.folder.settings import AGAIN, FolderSettings

if TYPE_CHECKING:
    from idecode_core.conformal.calibration import Calibration

PARTS = ("calibration.npz", "split.npz", "training.json", "files.csv")
"""What belongs to a detector from the start."""
LISTED = (*PARTS, "scores/*.npz", "softmax/*.npz", "plain/scores/*.npz", "ablations/*.npz")
"""Weights have the scorer's hash; card, log and learning curve are for readers only. The last three are of earlier versions.
Scores of other scorers, `scores/<scorer>/<set>.npz`, are listed one by one as they are written."""


def content_sha256(path: Path) -> str:
    """Of a plain file, read piece by piece."""
    try:
        regular_size(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {reason(error)}. {AGAIN}") from error


def listing(folder: Path) -> dict[str, str]:
    """The content hash of every file that counts, by its path inside the folder."""
    paths = (
        path for pattern in LISTED for path in sorted(folder.glob(pattern)) if not path.name.startswith(".")
    )
    return {path.relative_to(folder).as_posix(): content_sha256(path) for path in paths}


def check_file(settings: FolderSettings, name: str) -> None:
    """CheckpointError when a listed file is not the one that was saved. Folders of earlier versions have no list."""
    path = settings.folder / name
    if settings.files and settings.files.get(name) != content_sha256(path):
        raise CheckpointError(
            f"{path} is not the file that was saved with this detector: its content hash is not the one in config.json. "
            f"Use the folder as it was saved, or make that file again."
        )


def check_made_with(path: Path, made_with: str, scorer_sha256: str, again: str) -> None:
    """CheckpointError unless a file carries the hash of this scorer."""
    if made_with != scorer_sha256:
        raise CheckpointError(
            f"{path} was made with other weights or settings: expected scorer {scorer_sha256[:12]}, got {made_with[:12]}. "
            f"{again}"
        )


def check_parts(settings: FolderSettings) -> None:
    """`check_file` for calibration, split and training record; stored scores are checked when they are read."""
    for name in PARTS:
        if (settings.folder / name).exists():
            check_file(settings, name)


def is_listed(settings: FolderSettings, name: str) -> bool:
    """Whether a file was finished; all are in folders of earlier versions, which have no list."""
    return not settings.files or name in settings.files


def add_files(folder: Path, names: Iterable[str]) -> None:
    """List files that were written after the detector was saved, such as scores."""
    path = folder / "config.json"
    config = read_json(path, what="a detector's settings", error=CheckpointError, hint=AGAIN)
    files = {
        **(config["files"] if "files" in config else listing(folder)),
        **{name: content_sha256(folder / name) for name in names},
    }
    write_json(path, {**config, "files": dict(sorted(files.items()))})


def write_listing(folder: Path, config: dict[str, object]) -> None:
    """config.json of a folder whose other files are there: it comes last."""
    (folder / "config.json").write_text(
        json.dumps({**config, "files": listing(folder)}, indent=2) + "\n", encoding="utf-8"
    )


NAME = "calibration.npz"


def write_calibration(folder: Path, calibration: "Calibration", scorer_sha256: str) -> None:
    arrays = {
        "score_vectors": calibration.score_vectors,
        "seed": np.array(calibration.seed),
        "scorer": np.array(scorer_sha256),
    }
    write_npz(folder / NAME, arrays)


def read_calibration(settings: FolderSettings) -> "Calibration":
    """The calibration of a folder, only if it was made with its scorer and is the one that was saved."""
    from idecode_core.conformal.calibration import Calibration  # needs SciPy; a list of folders does not

    path = settings.folder / NAME
    arrays = read_arrays(
        path,
        ("score_vectors", "seed", "scorer"),
        what="a calibration",
        error=CheckpointError,
        hint="Calibrate again.",
    )
    again = "Its p-values would mean nothing; calibrate again."
    check_made_with(path, str(arrays["scorer"]), settings.scorer_sha256, again)
    check_file(settings, NAME)
    try:
        calibration = Calibration(arrays["score_vectors"], int(arrays["seed"]))
    except (IdecodeError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    check_sizes(settings, calibration.score_vectors.shape)
    return calibration


def check_sizes(settings: FolderSettings, shape: tuple[int, ...]) -> None:
    """CheckpointError unless calibration.npz has the points and draws that config.json speaks of."""
    if shape != (settings.k, settings.n_max):
        raise CheckpointError(
            f"{settings.folder / NAME} holds scores of shape {shape}, and config.json says {settings.k:,} points with "
            f"{settings.n_max} draws: they do not belong together. Use the folder as it was saved."
        )
