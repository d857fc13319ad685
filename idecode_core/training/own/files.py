"""Anybody's files: found in a folder or a CSV, read once, the broken ones and the copies listed and left out."""

import csv
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from idecode_core.draws import content_hash
from idecode_core.errors import InputError
from idecode_core.files.names import NOUNS, printable
from idecode_core.files.read import reason
from idecode_core.modality import modality_named

Labels = Literal["folders", "none"]
FEWEST_PER_CLASS = 5
"""Subfolders with fewer files are no classes."""
PATH_TITLES, LABEL_TITLES = ("file", "path"), ("label", "class")


@dataclass(frozen=True)
class Candidate:
    """A file that should be read, its name for people and its class ("" for none)."""

    path: Path
    name: str
    label: str


@dataclass(frozen=True)
class OwnFile:
    """A file that was read, with the hash of its decoded content."""

    path: Path
    name: str
    label: str
    content: str
    side: float
    """Pictures: pixels of the shorter side. Sounds: seconds."""
    grey: bool = False


@dataclass(frozen=True)
class Scan:
    """What is in a user's folder: different files, and a sentence for each that is left out."""

    source: str
    modality: str
    files: tuple[OwnFile, ...]
    classes: tuple[str, ...]
    """Empty where the files have none."""
    broken: tuple[str, ...]
    copies: tuple[str, ...]
    others: Mapping[str, int]
    """Files that are not looked at: how many by the ending of their names."""

    @property
    def y(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """The class of each file (N,); all 0 without classes."""
        places = {name: place for place, name in enumerate(self.classes)}
        return np.array([places.get(file.label, 0) for file in self.files], np.int64)

    @property
    def fingerprint(self) -> str:
        """A hash of the content of all files, in their order, and of their classes."""
        lines = "\n".join(f"{file.content} {file.label if self.classes else ''}" for file in self.files)
        return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()

    def sentences(self, shown: int = 10) -> list[str]:
        """What was found and what was left out, for people."""
        noun = NOUNS[self.modality]
        kinds = f" in {len(self.classes)} classes ({_some(self.classes)})" if self.classes else ""
        said = [f"{printable(self.source)}: {len(self.files):,} different {noun}s{kinds}."]
        for these, one, several in (
            (self.broken, "cannot be read and is", "cannot be read and are"),
            (self.copies, "is a copy of another and is", "are copies of others and are"),
        ):
            if these:
                verb = f"file {one}" if len(these) == 1 else f"files {several}"
                said.append(f"{len(these):,} {verb} left out:")
                said += [f"  {sentence}" for sentence in these[:shown]]
                if len(these) > shown:
                    said.append(f"  ... and {len(these) - shown:,} more")
        if self.others:
            said.append(f"Files of other types are not looked at: {printable(_kinds(self.others))}.")
        return said

    @property
    def left_out(self) -> str:
        """left-out.txt: a sentence for each file, however many they are."""
        return "".join(f"{sentence}\n" for sentence in (*self.broken, *self.copies))


def _some(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _kinds(counts: Mapping[str, int]) -> str:
    """The most frequent first.

    >>> _kinds({".txt": 1, ".heic": 30, "": 2})
    '.heic (30), without ending (2), .txt (1)'
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _some([f"{ending or 'without ending'} ({count:,})" for ending, count in ordered])


def find_own(
    source: Path, extensions: tuple[str, ...], noun: str
) -> tuple[list[Candidate], Mapping[str, int]]:
    """The files of a folder, and below it, in a fixed order, or those of a CSV with a column `file` or `path`; and how many of
    other types there are. Links to folders are not followed, so that none can lead in a circle."""
    others: Counter[str] = Counter()
    if source.is_dir():
        names = list(_walk(source))
        found = [_candidate(source, path) for path in names if path.name.lower().endswith(extensions)]
        others.update(path.suffix.lower() for path in names if not path.name.lower().endswith(extensions))
    elif source.suffix.lower() == ".csv" and source.is_file():
        found = list(_rows(source))
    else:
        what = "is a file" if source.exists() else "is not here"
        raise InputError(
            f"{printable(str(source))} {what}: expected a folder of {noun}s, or a CSV with a column file (and label, if there "
            "are classes). Check the path."
        )
    if not found:
        but = f" but {printable(_kinds(others))}" if others else ""
        raise InputError(
            f"{printable(str(source))}: expected {noun}s of type {', '.join(extensions)} in this folder or below it, found "
            f"none{but}. Check the path, or convert the files."
        )
    return found, others


def _walk(folder: Path) -> Iterator[Path]:
    """What is not hidden."""
    for here, inside, names in os.walk(folder):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        yield from (Path(here) / name for name in sorted(names) if not name.startswith("."))


def _candidate(folder: Path, path: Path) -> Candidate:
    relative = path.relative_to(folder)
    label = relative.parts[0] if len(relative.parts) > 1 else ""
    return Candidate(path, printable(relative.as_posix()), printable(label))


def _rows(table: Path) -> Iterator[Candidate]:
    """Paths are relative to the CSV's own folder."""
    try:
        with table.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
            rows = csv.DictReader(lines)
            titles = rows.fieldnames or []
            path_title = next((title for title in PATH_TITLES if title in titles), None)
            label_title = next((title for title in LABEL_TITLES if title in titles), None)
            if path_title is None:
                raise InputError(
                    f"{table}: expected a column called file or path in its first line, got {', '.join(titles)[:80]!r}."
                )
            for row in rows:
                if name := row[path_title]:
                    label = (row[label_title] or "") if label_title else ""
                    yield Candidate(table.parent / name, printable(name), printable(label))
    except (OSError, csv.Error) as error:
        raise InputError(f"{table} cannot be read as a CSV: {reason(error)}. Check the file.") from error


def scan(
    source: Path | str,
    modality: str = "image",
    labels: Labels | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scan:
    """Read every file once. Without `labels`, subfolders are classes if there are at least two of them and no file lies
    beside them. `progress` gets (files done, files)."""
    look = _look_at_sound if modality == "audio" else _look_at_image
    candidates, others = find_own(Path(source), modality_named(modality).extensions, NOUNS[modality])
    files: dict[str, OwnFile] = {}
    broken, copies = [], []
    for done, candidate in enumerate(candidates, start=1):
        try:
            found = look(candidate)
        except InputError as error:
            broken.append(printable(str(error)))
        else:
            first = files.setdefault(found.content, found)
            if first is not found:
                copies.append(f"{found.name}: the same as {first.name}")
        if progress is not None:
            progress(done, len(candidates))
    good = tuple(files.values())
    return Scan(
        str(source),
        modality,
        good,
        classes_of(good, labels, str(source)),
        tuple(broken),
        tuple(copies),
        others,
    )


def classes_of(files: Sequence[OwnFile], labels: Labels | None, source: str) -> tuple[str, ...]:
    """The classes' names in alphabetical order; none where there are no labels or they are not wanted."""
    counts: dict[str, int] = {}
    for file in files:
        counts[file.label] = counts.get(file.label, 0) + 1
    whole = len(counts) > 1 and "" not in counts and min(counts.values()) >= FEWEST_PER_CLASS
    if labels == "none" or (labels is None and not whole):
        return ()
    if not whole:
        few = [
            f"{name or 'no class'} ({count})"
            for name, count in sorted(counts.items())
            if count < FEWEST_PER_CLASS
        ]
        raise InputError(
            f"{printable(source)}: --labels folders expects at least two subfolders with {FEWEST_PER_CLASS} files each and none "
            f"beside them, got {_some(few or [f'{count} files of {name or chr(45)}' for name, count in counts.items()])}. "
            "Use --labels none, or sort the files."
        )
    return tuple(sorted(counts))


def _look_at_image(candidate: Candidate) -> OwnFile:
    from idecode_core.image.read import read_image

    pixels = read_image(candidate.path, name=candidate.name)
    grey = bool((pixels[::4, ::4, :1] == pixels[::4, ::4]).all())
    return OwnFile(
        **vars(candidate), content=content_hash(pixels), side=float(min(pixels.shape[:2])), grey=grey
    )


def _look_at_sound(candidate: Candidate) -> OwnFile:
    from idecode_core.audio.read import read_sound

    sound = read_sound(candidate.path, name=candidate.name)
    return OwnFile(
        **vars(candidate), content=content_hash(sound.samples, sound.sample_rate), side=sound.seconds
    )
