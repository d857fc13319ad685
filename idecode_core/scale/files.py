"""Which files are to be scored: listed once, on disk, so that a resumed run has the same parts and memory stays small."""

import csv
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from idecode_core.errors import InputError
from idecode_core.files import write_atomically

NAME = "_files.jsonl"  # readers of Parquet folders pass over names that begin so
TITLES = ("file", "path")


@dataclass(frozen=True)
class Part:
    """Some consecutive lines of the list."""

    number: int
    offset: int  # bytes
    count: int


def find_files(source: Path, extensions: tuple[str, ...]) -> Iterator[str]:
    """The files of a folder and below it, in a fixed order, or those that a list names: a text file with one path per
    line, or a CSV with a column `file` or `path`. Links to folders are not followed, so that none can lead in a circle."""
    if source.is_dir():
        return _walk(source, extensions)
    if source.suffix.lower() not in (".txt", ".csv", ".lst"):
        raise InputError(
            f"{source}: expected a folder of files, or a list of them (.txt with one path per line, or .csv with a column "
            "file). Check the path."
        )
    return _from_list(source)


def _walk(folder: Path, extensions: tuple[str, ...]) -> Iterator[str]:
    for here, inside, names in os.walk(folder):
        inside.sort()
        for name in sorted(names):
            if name.lower().endswith(extensions):
                yield f"{here}{os.sep}{name}"  # a Path per file would be the slowest step


def _from_list(source: Path) -> Iterator[str]:
    try:
        with source.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
            if source.suffix.lower() != ".csv":
                yield from (path for line in lines if (path := line.rstrip("\r\n")))
                return
            rows = csv.reader(lines)
            titles = next(rows, [])
            column = next((titles.index(title) for title in TITLES if title in titles), None)
            if column is None:
                raise InputError(
                    f"{source}: expected a column called file or path in its first line, got {', '.join(titles)[:80]!r}."
                )
            yield from (row[column] for row in rows if len(row) > column and row[column])
    except (OSError, csv.Error) as error:
        raise InputError(f"{source}: cannot be read as a list of files ({error}). Check it.") from None


def write_list(folder: Path, files: Iterable[str]) -> int:
    """Write the files' names, one JSON text per line, so that any name goes through; their number."""
    count = 0

    def write(temporary: Path) -> None:
        nonlocal count
        with temporary.open("w", encoding="ascii") as lines:
            for count, name in enumerate(files, start=1):  # noqa: B007  the last one is the number of files
                lines.write(json.dumps(name) + "\n")

    write_atomically(folder / NAME, write)
    return count


def parts(folder: Path, size: int) -> Iterator[Part]:
    """The list in parts of `size` files; one pass, nothing is kept."""
    with (folder / NAME).open("rb") as lines:
        number = offset = 0
        while chunk := [len(line) for line in islice(lines, size)]:
            yield Part(number, offset, len(chunk))
            number, offset = number + 1, offset + sum(chunk)


def read_part(folder: Path, part: Part) -> list[str]:
    with (folder / NAME).open("rb") as lines:
        lines.seek(part.offset)
        return [str(json.loads(line)) for line in islice(lines, part.count)]
