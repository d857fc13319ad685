"""What belongs together in a detector folder: config.json lists the content hash of every file that counts.

The scorer's own hash ties weights and settings (`detector`); this ties calibration, split, training record and stored
scores to them. A file that changed after saving is refused; one that is not listed was never finished and is not read.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from idecode_core.errors import CheckpointError
from idecode_core.files import write_json
from idecode_core.files.read import read_json, reason, regular_size
from idecode_core.folder.settings import AGAIN, FolderSettings

PARTS = ("calibration.npz", "split.npz", "training.json", "files.csv")
"""What belongs to a detector from the start."""
LISTED = (
    *PARTS,
    "scores/*.npz",
    "softmax/*.npz",
    "plain/scores/*.npz",
    "ablations/*.npz",
)
"""Weights have the scorer's hash; card, log and learning curve are for readers only."""


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
    found = (
        path for pattern in LISTED for path in sorted(folder.glob(pattern)) if not path.name.startswith(".")
    )
    return {path.relative_to(folder).as_posix(): content_sha256(path) for path in found}


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


def check_if_listed(settings: FolderSettings, name: str) -> None:
    """`check_file` for a file that may have been written after the list was."""
    if name in settings.files:
        check_file(settings, name)


def is_listed(settings: FolderSettings, name: str) -> bool:
    """Whether a file was finished; all are in folders of earlier versions, which have no list."""
    return not settings.files or name in settings.files


def add_files(folder: Path, names: Iterable[str]) -> None:
    """List files that were written after the detector was saved, such as scores."""
    path = folder / "config.json"
    config = read_json(path, what="a detector's settings", error=CheckpointError, hint=AGAIN)
    files = {
        **config.get("files", listing(folder)),
        **{name: content_sha256(folder / name) for name in names},
    }
    write_json(path, {**config, "files": dict(sorted(files.items()))})


def write_listing(folder: Path, config: dict[str, object]) -> None:
    """config.json of a folder whose other files are there: it comes last."""
    (folder / "config.json").write_text(
        json.dumps({**config, "files": listing(folder)}, indent=2) + "\n", encoding="utf-8"
    )
