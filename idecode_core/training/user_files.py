"""Anybody's files: found in a folder or a CSV, read once, the broken ones listed and left out, copies found by their content."""

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from idecode_core.errors import InputError, SettingError
from idecode_core.files.find import listed_in, walk
from idecode_core.files.names import NOUNS, printable
from idecode_core.files.shown import Report
from idecode_core.modality import content_of, modality_named, samples_of
from idecode_core.quality.score_sets import SetToScore
from idecode_core.training.strangers import for_testing

Labels = Literal["folders", "none"]
FEWEST_PER_CLASS = 5
"""Subfolders with fewer files are no classes."""
KEPT_BYTES = 2**28
"""Decoded files that are kept from the first look on, so that they need not be decoded again; the others are."""
MOST_OUTSIDE = 100
"""Points of one OOD set that are scored; more say hardly more."""
FEWEST_KNOWN = 6
"""Known outliers that a model can be chosen by: half of them choose."""


@dataclass(frozen=True)
class Candidate:
    """A file that should be read, its name for people and its class ("" for none)."""

    path: Path
    name: str
    label: str


@dataclass(frozen=True)
class UserFile:
    """A file that was read, with the hash of its decoded content."""

    path: Path
    name: str
    label: str
    content: str
    side: float
    """Pictures: pixels of the shorter side. Sounds: seconds."""
    grey: bool = False


@dataclass(frozen=True)
class ListedFiles:
    """Files of a list as a scorer takes them: each is decoded when its turn comes, and must still have the content that the list
    says."""

    modality: str
    files: tuple[UserFile, ...]
    kept: Mapping[str, Any] = field(default_factory=dict)
    """Content -> what is decoded already."""

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, places: slice) -> "ListedFiles":
        return ListedFiles(self.modality, self.files[places], self.kept)

    def __iter__(self) -> Iterator[Any]:
        read = modality_named(self.modality).read
        for file in self.files:
            if file.content in self.kept:
                yield self.kept[file.content]
                continue
            sample = read(file.path, file.name)
            if content_of(sample) != file.content:
                raise InputError(
                    f"{file.name}: changed while it was in use: expected the content that it had when the files were listed, got "
                    "other content. Let the files rest, and start again."
                )
            yield sample

    def at(self, places: Iterable[int]) -> "ListedFiles":
        """Those at these places, in this order."""
        return ListedFiles(self.modality, tuple(self.files[int(i)] for i in places), self.kept)

    @property
    def contents(self) -> list[str]:
        return [file.content for file in self.files]


@dataclass(frozen=True)
class Scan:
    """What is in a user's folder: files that can be read, and a sentence for each that is left out or is a copy."""

    source: str
    modality: str
    files: tuple[UserFile, ...]
    classes: tuple[str, ...]
    """Empty where the files have none."""
    broken: tuple[str, ...]
    copies: tuple[str, ...]
    others: Mapping[str, int]
    """Files that are not looked at: how many by the ending of their names."""
    kept: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Content -> what is decoded already."""

    def listed(self, indices: Iterable[int] | None = None) -> ListedFiles:
        """Some of the files, or all, as a scorer takes them."""
        files = self.files if indices is None else tuple(self.files[i] for i in indices)
        return ListedFiles(self.modality, files, self.kept)

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
        different = "" if self.copies else "different "
        lines = [f"{printable(self.source)}: {len(self.files):,} {different}{noun}s{kinds}."]
        for these, singular, plural in (
            (self.broken, "cannot be read and is left out", "cannot be read and are left out"),
            (self.copies, "is a copy of another and is kept", "are copies of others and are kept"),
        ):
            if these:
                verb = f"file {singular}" if len(these) == 1 else f"files {plural}"
                lines.append(f"{len(these):,} {verb}:")
                lines += [f"  {sentence}" for sentence in these[:shown]]
                if len(these) > shown:
                    lines.append(f"  ... and {len(these) - shown:,} more")
        if self.others:
            lines.append(f"Files of other types are not looked at: {printable(_kinds(self.others))}.")
        return lines

    @property
    def left_out(self) -> str:
        """left-out.txt: a sentence for each file, however many they are."""
        return "".join(f"{sentence}\n" for sentence in self.broken)


def _some(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _kinds(counts: Mapping[str, int]) -> str:
    """The most frequent first.

    >>> _kinds({".txt": 1, ".heic": 30, "": 2})
    '.heic (30), without ending (2), .txt (1)'
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _some([f"{ending or 'without ending'} ({count:,})" for ending, count in ordered])


def find_user_files(
    source: Path, extensions: tuple[str, ...], noun: str
) -> tuple[list[Candidate], Mapping[str, int]]:
    """The files of a folder and below it, or those of a CSV, whose paths are relative to its own folder; and how many of other
    types there are."""
    others: Counter[str] = Counter()
    if source.is_dir():
        names = [Path(name) for name in walk(source)]
        candidates = [_candidate(source, path) for path in names if path.name.lower().endswith(extensions)]
        others.update(path.suffix.lower() for path in names if not path.name.lower().endswith(extensions))
    elif source.suffix.lower() == ".csv" and source.is_file():
        candidates = [
            Candidate(source.parent / name, printable(name), printable(label))
            for name, label in listed_in(source)
        ]
    else:
        what = "is a file" if source.exists() else "is not here"
        raise InputError(
            f"{printable(str(source))} {what}: expected a folder of {noun}s, or a CSV with a column file (and label, if there "
            "are classes). Check the path."
        )
    if not candidates:
        but = f" but {printable(_kinds(others))}" if others else ""
        other = "audio" if noun == NOUNS["image"] else "image"
        if any(ending in modality_named(other).extensions for ending in others):
            raise InputError(
                f"{printable(str(source))}: expected {noun}s, found none{but}. "
                + ("For sounds add --audio." if other == "audio" else "For pictures leave --audio out.")
            )
        raise InputError(
            f"{printable(str(source))}: expected {noun}s of type {', '.join(extensions)} in this folder or below it, found "
            f"none{but}. Check the path, or convert the files."
        )
    return candidates, others


def _candidate(folder: Path, path: Path) -> Candidate:
    relative = path.relative_to(folder)
    label = relative.parts[0] if len(relative.parts) > 1 else ""
    return Candidate(path, printable(relative.as_posix()), printable(label))


def scan(
    source: Path | str, modality: str = "image", labels: Labels | None = None, report: Report | None = None
) -> Scan:
    """Read every file once. Without `labels`, subfolders are classes if there are at least two of them and no file lies
    beside them."""
    if labels not in (None, "folders", "none"):
        raise SettingError(f"--labels must be folders or none, got {labels!r}.")
    kind = modality_named(modality)
    candidates, others = find_user_files(Path(source), kind.extensions, NOUNS[modality])
    files: list[UserFile] = []
    first: dict[str, str] = {}
    broken, copies = [], []
    kept: dict[str, Any] = {}
    room = KEPT_BYTES
    for done, candidate in enumerate(candidates, start=1):
        try:
            sample = kind.read(candidate.path, candidate.name)
        except InputError as error:
            broken.append(printable(str(error)))
        else:
            file = _described(candidate, sample)
            files.append(file)
            if file.content in first:
                copies.append(f"{file.name}: the same as {first[file.content]}")
            first.setdefault(file.content, file.name)
            size = getattr(sample, "samples", sample).nbytes
            if size <= room and file.content not in kept:
                kept[file.content] = sample
                room -= size
        if report is not None:
            report("reading", done, len(candidates))
    classes = classes_of(files, labels, str(source))
    return Scan(str(source), modality, tuple(files), classes, tuple(broken), tuple(copies), others, kept)


def classes_of(files: Sequence[UserFile], labels: Labels | None, source: str) -> tuple[str, ...]:
    """The classes' names in alphabetical order; none where there are no labels or they are not wanted."""
    counts = Counter(file.label for file in files)
    whole = len(counts) > 1 and "" not in counts and min(counts.values()) >= FEWEST_PER_CLASS
    if labels == "none" or (labels is None and not whole):
        return ()
    if not whole:
        few = [
            f"{name or 'no class'} ({count})"
            for name, count in sorted(counts.items())
            if count < FEWEST_PER_CLASS
        ]
        many = [
            f"{count} files {f'of {name}' if name else 'in no subfolder'}" for name, count in counts.items()
        ]
        raise InputError(
            f"{printable(source)}: --labels folders expects at least two subfolders with {FEWEST_PER_CLASS} files each and none "
            f"beside them, got {_some(few or many)}. "
            "Use --labels none, or sort the files."
        )
    return tuple(sorted(counts))


def _described(candidate: Candidate, sample: Any) -> UserFile:
    content = content_of(sample)
    if hasattr(sample, "sample_rate"):
        return UserFile(**vars(candidate), content=content, side=sample.seconds)
    grey = bool((sample[::4, ::4, :1] == sample[::4, ::4]).all())
    return UserFile(**vars(candidate), content=content, side=float(min(sample.shape[:2])), grey=grey)


def points_of(
    source: str, modality: str, data_root: Path | None = None, report: Report | None = None
) -> tuple[Any, Scan | None]:
    """The points that a user names, as a scorer takes them: a dataset, or the files of a folder or a CSV that can be read, with
    what was found there."""
    if not Path(source).is_dir() and Path(source).suffix.lower() != ".csv":
        return samples_of(source, modality, data_root), None
    scanned = scan(source, modality, "none", report)
    if not scanned.files:
        raise InputError(f"{source}: none of the files can be read: {scanned.broken[0]}")
    return scanned.listed(), scanned


def sets_outside(sources: Sequence[str], inside: Scan, report: Report | None = None) -> list[SetToScore]:
    """What does not belong: the user's folders or datasets, else the sets that come with the project."""
    if not sources:
        bundled = modality_named(inside.modality).bundled("")
        if inside.modality == "audio":  # the others may choose the model
            bundled = {label: for_testing(sounds) for label, sounds in bundled.items()}
        return [SetToScore(_file_name(label), True, points) for label, points in bundled.items()]
    known = {file.content for file in inside.files}
    sets: list[SetToScore] = []
    for source in sources:
        points, scanned = points_of(source, inside.modality, None, report)
        if scanned is None:
            points = points[:MOST_OUTSIDE]
        refuse_shared(source, points, known, inside.source)
        if scanned is not None:
            step = max(1, len(points) // MOST_OUTSIDE)
            points = scanned.listed(range(0, len(points), step)[:MOST_OUTSIDE])
        name = _file_name(Path(source).stem)
        if any(earlier.name == name for earlier in sets):
            raise SettingError(f"Two --ood sets are called {name}: rename one of the folders.")
        sets.append(SetToScore(name, True, points))
    return sets


def refuse_shared(source: str, points: Any, known: Container[str], belongs: str) -> None:
    """An InputError where files that do not belong are, by content, among those that do."""
    both = sum(content in known for content in contents_of(points))
    if both:
        raise InputError(
            f"{printable(source)}: {both:,} of {len(points):,} files are also in {printable(belongs)}, whatever they are called there: "
            "expected files that do not belong, for --ood. Take them out of one of the two."
        )


def contents_of(points: Any) -> list[str]:
    """The hash of each point's decoded content."""
    return points.contents if isinstance(points, ListedFiles) else list(map(content_of, points))


def split_known(sets: Sequence[SetToScore], seed: int) -> tuple[list[SetToScore], list[SetToScore]]:
    """Known outliers that choose, and those that test: half of each set's contents, at random by the seed. Copies are in one half,
    also those in another set."""
    generator = np.random.default_rng([seed, len(sets)])
    choose: dict[str, bool] = {}
    halves: tuple[list[SetToScore], list[SetToScore]] = ([], [])
    for ood_set in sets:
        contents = contents_of(ood_set.points)
        new = sorted(set(contents) - choose.keys())
        order = generator.permutation(len(new))
        choose |= {new[i]: place < len(new) // 2 for place, i in enumerate(order)}
        for half, chooses in zip(halves, (True, False), strict=True):
            places = [i for i, content in enumerate(contents) if choose[content] == chooses]
            if places:
                half.append(SetToScore(ood_set.name, True, _at(ood_set.points, places)))
    count = sum(map(len, sets))
    if len(choose) < FEWEST_KNOWN or not all(halves):
        raise InputError(
            f"--learn-from-ood expects at least {FEWEST_KNOWN} different files that do not belong, of which half choose the model "
            f"and half test it; got {count}. Bring more, or leave it out."
        )
    return halves


def _at(points: Any, places: Sequence[int]) -> Any:
    if isinstance(points, ListedFiles):
        return points.at(places)
    return points[places] if isinstance(points, np.ndarray) else [points[i] for i in places]


def _file_name(words: str) -> str:
    """A set's name that can be a file's."""
    return "".join(c if c.isalnum() or c in "._" else "-" for c in words).strip("-.") or "set"
