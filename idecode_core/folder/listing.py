"""The detector folders of a place: those that can be used, and those that are broken, with one sentence each.

A broken folder must never keep the others from being listed.
"""

from dataclasses import dataclass
from pathlib import Path

from idecode_core.errors import CheckpointError
from idecode_core.files.read import DAMAGE, declared_shape, reason
from idecode_core.files.write import OLD, recovered
from idecode_core.folder.manifest import NAME, check_parts, check_sizes
from idecode_core.folder.settings import FolderSettings, checkpoint_root, read_settings


@dataclass(frozen=True)
class BrokenFolder:
    """A folder that should hold a detector, and what is wrong with it."""

    folder: Path
    sentence: str


@dataclass(frozen=True)
class Folders:
    """What lies below a root; neither list is ever None."""

    detectors: list[FolderSettings]
    broken: list[BrokenFolder]


def list_folders(root: Path | str | None = None) -> Folders:
    """Every detector folder below root, checked as far as that is quick: no weights and no scores are read."""
    root = Path(root or checkpoint_root())
    folders = Folders([], [])
    for folder in candidates(root):
        try:
            settings = read_settings(folder)
            check_quickly(settings)
            folders.detectors.append(settings)
        except CheckpointError as error:
            folders.broken.append(BrokenFolder(folder, str(error)))
        except DAMAGE as error:  # such as a folder that may not be read
            folders.broken.append(BrokenFolder(folder, f"{folder} cannot be read: {reason(error)}."))
    return folders


def list_detectors(root: Path | str | None = None) -> list[FolderSettings]:
    """The settings of every detector folder below root that can be used."""
    return list_folders(root).detectors


def candidates(root: Path) -> list[Path]:
    """Folders with a config.json, in alphabetical order; not those that a process is writing, whose names begin with a dot."""
    try:
        for old in sorted(root.iterdir()):
            if old.name.startswith(".") and old.name.endswith(OLD):
                recovered(old.with_name(old.name[1 : -len(OLD)]))
        return [
            path for path in sorted(root.iterdir()) if path.name[0] != "." and (path / "config.json").exists()
        ]
    except OSError:  # no such folder, or not to be read
        return []


def check_quickly(settings: FolderSettings) -> None:
    """CheckpointError when the calibration is not the one that config.json speaks of, or a small file was changed."""
    path = settings.folder / NAME
    try:
        shape = declared_shape(path, "score_vectors")
    except DAMAGE as error:
        raise CheckpointError(
            f"{path} cannot be read as a calibration: {reason(error)}. Calibrate again."
        ) from error
    check_sizes(settings, shape)
    check_parts(settings)
