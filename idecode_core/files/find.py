"""Folders and globs as lists of files, so that a verdict can be told by the file that it belongs to."""

import glob
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
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
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError:  # a name that is too long, a folder that may not be entered
        return [path]  # reading it says so
    if is_folder:
        found = sorted(p for p in path.rglob("*") if p.suffix.lower() in extensions and p.is_file())
        if not found:
            raise InputError(
                f"{path}: expected files of type {', '.join(extensions)} in this folder, found none. Check the folder."
            )
        return found
    if glob.has_magic(str(path)) and not is_there:
        found = sorted(file for file in _matches(path) if file.is_file())
        if not found:
            raise InputError(f"{path}: no file matches this pattern. Check the path.")
        return found
    if not is_there and not path.suffix and not path.is_symlink():
        raise InputError(
            f"There is no {path}: expected a file, a folder of files, or a pattern. Check the path."
        )
    return [path]  # a file, or none: reading it says so


def _matches(pattern: Path) -> Iterator[Path]:
    """What a glob matches, without what is hidden, as in a shell. Unlike the module glob, `**` follows no links to folders, so
    that none can lead in a circle."""
    start = Path(pattern.anchor)
    parts = [part if part == "**" else re.sub(r"\*+", "*", part) for part in pattern.relative_to(start).parts]
    if parts[-1] == "**":
        parts.append("*")
    hidden = [part for part in parts if part.startswith(".")]
    for match in start.glob(str(Path(*parts))):
        dotted = [part for part in match.relative_to(start).parts if part.startswith(".")]
        if all(any(fnmatch(part, wanted) for wanted in hidden) for part in dotted):
            yield match
