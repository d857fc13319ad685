"""Folders, globs and lists as files: the one walk through a user's folders, for all that takes files."""

import csv
import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from idecode_core.errors import InputError

PATH_TITLES, LABEL_TITLES = ("file", "path"), ("label", "class")


def walk(folder: Path | str, left_out: Callable[[OSError], None] | None = None) -> Iterator[str]:
    """The files of a folder and below it, in a fixed order, without what is hidden (`._a.png`, `.cache/`). Links to folders are
    not followed, so that none can lead in a circle. `left_out` is told of a folder that cannot be entered."""
    for here, inside, names in os.walk(folder, onerror=left_out):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        # texts: a Path for each is slow
        yield from (f"{here}{os.sep}{name}" for name in sorted(names) if not name.startswith("."))


def listed_in(table: Path) -> Iterator[tuple[str, str]]:
    """(file, class) as a list names them: a CSV with a column `file` or `path`, and `label` or `class` if there are classes ("" if
    not); any other text has one file in each line."""
    try:
        with table.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
            if table.suffix.lower() != ".csv":
                yield from ((name, "") for line in lines if (name := line.rstrip("\r\n")))
                return
            rows = csv.DictReader(lines)
            titles = rows.fieldnames or []
            path_title = next((title for title in PATH_TITLES if title in titles), None)
            label_title = next((title for title in LABEL_TITLES if title in titles), "")
            if path_title is None:
                raise InputError(
                    f"{table}: expected a column called file or path in its first line, got {', '.join(titles)[:80]!r}."
                )
            yield from ((row[path_title], row.get(label_title) or "") for row in rows if row[path_title])
    except (OSError, csv.Error) as error:
        raise InputError(f"{table} cannot be read as a list of files ({error}). Check the file.") from error


def found_files(samples: Any, extensions: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
    """Paths, folders and globs, one or many -> a list of files, and their names; other samples as they are, without names."""
    several = isinstance(samples, list | tuple)
    paths = samples if several else [samples]
    if not paths or not all(isinstance(path, str | Path) for path in paths):
        return samples, ()
    files = [file for path in paths for file in expanded(Path(path).expanduser(), extensions)]
    return files, tuple(str(file) for file in files)


def expanded(path: Path, extensions: Sequence[str]) -> list[Path]:
    """A folder as the files in it and below it, a glob as what it matches, in a fixed order; a file as it is."""
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError:  # a name that is too long, a folder that may not be entered
        return [path]  # reading it says so
    if is_folder:
        files = [Path(name) for name in walk(path) if name.lower().endswith(tuple(extensions))]
        if not files:
            raise InputError(
                f"{path}: expected files of type {', '.join(extensions)} in this folder, found none. Check the folder."
            )
        return files
    if glob.has_magic(str(path)) and not is_there:
        files = sorted(file for file in _matches(path) if file.is_file())
        if not files:
            raise InputError(f"{path}: no file matches this pattern. Check the path.")
        return files
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
        if all(any(fnmatch(part, asked_for) for asked_for in hidden) for part in dotted):
            yield match
