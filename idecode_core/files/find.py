"""Folders and globs as lists of files, so that a verdict can be told by the file that it belongs to."""

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from idecode_core.errors import InputError


def found_files(samples: Any, extensions: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
    """Paths, folders and globs, one or many -> a list of files, and their names; other samples as they are, without names."""
    several = isinstance(samples, list | tuple)
    paths = samples if several else [samples]
    if not paths or not all(isinstance(path, str | Path) for path in paths):
        return samples, ()
    found = [file for path in paths for file in expanded(Path(path).expanduser(), extensions)]
    return found, tuple(str(file) for file in found)


def expanded(path: Path, extensions: Sequence[str]) -> list[Path]:
    """A folder as the files in it and below it, a glob as what it matches, in alphabetical order; a file as it is."""
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix.lower() in extensions and p.is_file())
        if not found:
            raise InputError(
                f"{path}: expected files of type {', '.join(extensions)} in this folder, found none. Check the folder."
            )
        return found
    if glob.has_magic(str(path)) and not path.exists():
        names = glob.glob(str(path), recursive=True)  # noqa: PTH207  Path.glob takes no absolute pattern
        found = sorted(Path(name) for name in names if Path(name).is_file())
        if not found:
            raise InputError(f"{path}: no file matches this pattern. Check the path.")
        return found
    return [path]  # a file, or none: reading it says so
