"""Which files are to be scored: listed once, on disk, so that a resumed run has the same parts and memory stays small."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from idecode_core.errors import InputError
from idecode_core.files import write_atomically
from idecode_core.files.find import listed_in, walk
from idecode_core.files.read import reason, regular_size

NAME = "_files.jsonl"  # readers of Parquet folders pass over names that begin so
LISTS = (".txt", ".csv", ".lst")
Tell = Callable[[str], object]
"""Called with each sentence that the user should read."""


@dataclass(frozen=True)
class Stretch:
    """Some consecutive lines of the list, for one worker."""

    start: int  # files before it
    offset: int  # bytes before it
    count: int


def find_files(source: Path, extensions: tuple[str, ...], tell: Tell) -> Iterator[str]:
    """The files of a folder and below it, in a fixed order, or those that a list names: a text file with one path per
    line, or a CSV with a column `file` or `path`."""
    if source.is_dir():

        def leave_out(error: OSError) -> None:
            tell(f"{error.filename} cannot be entered ({reason(error)}) and is left out.")

        return (name for name in walk(source, leave_out) if name.lower().endswith(extensions))
    if not source.exists():
        raise InputError(
            f"There is no {source}: expected a folder of files, or a list of them. Check the path."
        )
    if source.suffix.lower() not in LISTS:
        raise InputError(
            f"{source}: expected a folder of files, or a list of them (.txt with one path per line, or .csv with a column "
            "file). Check the path."
        )
    return (name for name, _ in listed_in(source))


def write_list(folder: Path, files: Iterable[str]) -> tuple[int, str]:
    """Write the files' names, one JSON text per line, so that any name goes through; their number and the list's hash."""
    count, digest = 0, hashlib.sha256()

    def write(temporary: Path) -> None:
        nonlocal count
        with temporary.open("wb") as lines:
            for count, name in enumerate(files, start=1):  # noqa: B007  the last one is the number of files
                line = json.dumps(name).encode("ascii") + b"\n"
                digest.update(line)
                lines.write(line)

    write_atomically(folder / NAME, write)
    return count, digest.hexdigest()


def list_sha256(folder: Path) -> str:
    """The hash of the list as it is now; empty where it cannot be read."""
    try:
        regular_size(folder / NAME)
        with (folder / NAME).open("rb") as lines:
            return hashlib.file_digest(lines, "sha256").hexdigest()
    except OSError:
        return ""


def read_lines(folder: Path, stretch: Stretch) -> list[bytes]:
    with (folder / NAME).open("rb") as lines:
        lines.seek(stretch.offset)
        return list(islice(lines, stretch.count))


def names_in(lines: Iterable[bytes]) -> list[str]:
    return [str(json.loads(line)) for line in lines]
