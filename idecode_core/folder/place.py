"""The place of a detector folder, and the one function that writes there: it replaces a detector that it was told to replace,
and nothing else. What others have put beside the detector stays. No torch."""

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from idecode_core.errors import CheckpointError, IdecodeError, SettingError
from idecode_core.files.names import printable
from idecode_core.files.read import read_json, regular_size
from idecode_core.files.write import check_writable, could_not_write, recovered, write_folder
from idecode_core.folder import settings
from idecode_core.folder.manifest import LISTED

PATTERNS = (
    *(*settings.FILES, "card.md", "training.json", "recipe.json", "log.jsonl", "learning-curve.svg"),
    *("left-out.txt", "report.html"),
    *LISTED,
)
"""What belongs to the detector in a folder, and goes with it when another takes its place; all else is the user's."""


def new_place(out: Path | str, replace: bool = False, inputs: Iterable[Path | str] = ()) -> Path:
    """Where a new detector goes, checked before the work begins: a bare name lies where the app and --detector find it, a path
    where it says (`./mine` and `mine/` are paths, which only text tells apart). `inputs` are what the command reads."""
    place = Path(out)
    root = settings.checkpoint_root()
    home = settings.user_detectors() if root == settings.BUNDLED else root
    check_name(place.name or str(place))
    if str(out) == place.name:
        place = home / place
    check_writable(check_place(place, replace=replace, inputs=inputs))
    return place


def check_name(name: str) -> None:
    """SettingError unless a folder of this name is listed, is nobody's former self, and is no way to another folder."""
    if not (name[:1].isalnum() or name[:1] == "_") or set(name) & set("/\\:") or printable(name) != name:
        raise SettingError(
            f"{name!r} is not a detector's name: expected one like fashion-rotations, which begins with a letter or a digit. "
            "Name the new detector with --out."
        )


def check_place(folder: Path, *, replace: bool, inputs: Iterable[Path | str] = ()) -> Path:
    """The folder that a path leads to; an IdecodeError unless a detector can be put there and nothing else is lost."""
    check_name(folder.name or str(folder))
    try:
        real = folder.resolve()
        kept = [(Path.cwd(), "the folder that you are in"), (Path.home(), "your home folder")]
        roots = settings.checkpoint_root(), settings.user_detectors(), settings.BUNDLED
        kept += [(root, "the place of all detectors") for root in roots]
        kept += [(Path(given), "what is read") for given in inputs if Path(given).exists()]
        for path, words in kept:
            if real in (path.resolve(), *path.resolve().parents):
                raise CheckpointError(
                    f"{folder} is or contains {words}, so it is not replaced: expected a folder of its own for the new detector. "
                    "Choose another for --out."
                )
        check_name(real.name)  # of what a link leads to
        recovered(real)
        if real.exists() and not real.is_dir():
            raise NotADirectoryError(0, "a file is in its place")
        if real.is_dir() and any(real.iterdir()):
            check_replaceable(folder, replace)
    except IdecodeError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # a link to itself, no home, or "\0" among them
        raise could_not_write(folder, error) from error
    return real


def check_replaceable(folder: Path, replace: bool) -> None:
    """CheckpointError unless a folder with files in it is a detector's that may be replaced."""
    config = None
    with suppress(CheckpointError):
        config = read_json(folder / "config.json", what="settings", error=CheckpointError, hint="")
    if not isinstance(config, dict) or "scorer_sha256" not in config:
        raise CheckpointError(
            f"{folder} holds other files and no detector, so it is not replaced: expected a new or an empty folder, or a "
            "detector's. Choose another."
        )
    if not replace:
        raise CheckpointError(
            f"{folder} already holds a detector: expected a new folder. Choose another for --out, or add --replace to put the "
            "new one in its place."
        )


def write_detector_folder(
    folder: Path, fill: Callable[[Path], object], *, replace: bool, inputs: Iterable[Path | str] = ()
) -> None:
    """Let `fill` make a complete detector folder, then put it at its place; see `check_place` for what is refused. A killed
    process leaves the old detector or the new one."""
    inputs = list(inputs)
    real = check_place(folder, replace=replace, inputs=inputs)
    bring_bundled_along(real)

    def fill_and_keep(new: Path) -> None:
        fill(new)
        check_place(folder, replace=replace, inputs=inputs)  # again: filling may take long
        if real.is_dir():
            take_along(real, new)

    write_folder(real, fill_and_keep, replace=replace)


def bring_bundled_along(folder: Path) -> None:
    """Before the first detector of a user's own: what an installed package brought goes there too, so that all are listed."""
    home = settings.user_detectors()
    if folder.parent == home.resolve() and not home.exists() and settings.BUNDLED.is_dir():
        for bundled in sorted(settings.BUNDLED.iterdir()):
            write_folder(home / bundled.name, partial(shutil.copytree, bundled, dirs_exist_ok=True))


def take_along(folder: Path, new: Path) -> None:
    """What others put into a detector folder, such as notes, goes into the new one that takes its place."""
    detectors = {
        path
        for pattern in PATTERNS
        for path in folder.glob(pattern)
        if path.is_symlink() or not path.is_dir()
    }
    with suppress(CheckpointError):  # of what lies deeper, the detector's is what it lists
        config = read_json(folder / "config.json", what="settings", error=CheckpointError, hint="")
        detectors |= {
            path
            for path in folder.glob("scores/*/*.npz")
            if path.relative_to(folder).as_posix() in config.get("files", ())
        }
    for place, folders, files in os.walk(folder, onerror=_raise):
        for path in (Path(place) / name for name in (*folders, *files)):
            target = new / path.relative_to(folder)
            try:
                if path in detectors:
                    continue
                if path.is_dir() and not path.is_symlink():
                    if not any(path.iterdir()):
                        target.mkdir(parents=True, exist_ok=True)
                    continue
                if os.path.lexists(target):
                    raise FileExistsError
                target.parent.mkdir(parents=True, exist_ok=True)
                if not path.is_symlink():
                    regular_size(path)  # a pipe would wait for ever
                shutil.copy2(path, target, follow_symlinks=False)
            except (FileExistsError, NotADirectoryError) as error:
                raise CheckpointError(
                    f"{path} is not the detector's, and the new one has a file of that name: nothing was replaced. Move it away, "
                    "then try again."
                ) from error


def _raise(error: OSError) -> None:
    raise error
