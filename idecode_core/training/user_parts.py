"""The parts of a user's own files: to fit, to validate, to calibrate, to test, split at random and stored by content.

Calibration and test files must be equally new to the model, so the split is a random one of contents: all copies of a file are
in one part. Files are only spent on validation where it chooses something, the epoch; else they calibrate.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from idecode_core.audio.features import LogMel
from idecode_core.audio.sets import SoundSet
from idecode_core.errors import CheckpointError, InputError
from idecode_core.files.names import NOUNS, csv_text, printable
from idecode_core.folder.record import Split, TrainingRecord
from idecode_core.image.features import Preprocessing
from idecode_core.image.sets import ImageSet
from idecode_core.quality.score_sets import SetToScore
from idecode_core.training.parts import Parts
from idecode_core.training.user_files import ListedFiles, Scan, contents_of, scan

FEWEST = 40
"""Files that a detector can be made of: fewer leave too few for each part."""
SHARES = {"validation": (0.1, 1000), "calibration": (0.3, 2000), "test": (0.15, 300)}
"""Of the different files, and at most so many (300 tested files say nearly as much as more); the rest is the proper training
set."""
SOUND_RATE = 16_000
MOST_KINDS = 8
SOURCE = "source"
"""Where a training record's settings say which folder the files came from; only those of own data do."""


@dataclass(frozen=True, eq=False)
class FileSet:
    """Pictures that stay on disk, so that memory does not grow with them; y (N,) are their classes."""

    name: str
    samples: ListedFiles
    """What a scorer takes."""
    y: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.samples)

    def shrunk(self, preprocessing: Preprocessing) -> ImageSet:
        """All pictures at a small network's size, in memory."""
        pixels = [preprocessing(picture) for picture in self.samples]
        return ImageSet(self.name, np.stack(pixels), self.y)


@dataclass(frozen=True)
class UserSplit:
    """A split with its test part, all as indices of a scan's files."""

    split: Split
    test: NDArray[np.int64]

    def parts(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        yield from vars(self.split).items()
        yield "test", self.test


def split_user_files(scanned: Scan, seed: int = 0, *, validates: bool = True) -> UserSplit:
    """A random split of the contents; InputError when there are too few. Without validation its share calibrates, and the other
    parts stay as they are, so that detectors of both kinds can be merged."""
    contents = [file.content for file in scanned.files]
    place = {content: i for i, content in enumerate(dict.fromkeys(contents))}
    count, noun = len(place), NOUNS[scanned.modality]
    if count < FEWEST:
        left_out = len(scanned.broken) + len(scanned.copies)
        also = f" ({left_out} more cannot be read or are copies)" if left_out else ""
        raise InputError(
            f"{printable(scanned.source)}: expected at least {FEWEST} different {noun}s, got {count}{also}. Add {noun}s of what "
            "belongs; 300 make a good start."
        )
    order = np.random.default_rng([seed, count]).permutation(count)
    part_of = np.full(count, "proper", dtype="<U11")
    cut = 0
    for name, (share, most) in SHARES.items():
        size = min(round(share * count), most)
        part_of[order[cut : cut + size]] = name if validates or name != "validation" else "calibration"
        cut += size
    parts = part_of[[place[content] for content in contents]]  # of each file: that of its content
    proper, validation, calibration, test = (
        np.flatnonzero(parts == name) for name in ("proper", "validation", "calibration", "test")
    )
    return UserSplit(Split(proper, validation, calibration), test)


def file_parts(scanned: Scan, user_split: UserSplit) -> Parts[Any]:
    """All parts of a user's pictures, on disk."""
    name, y = printable(scanned.source), scanned.y
    training, validation, calibration, test = (
        FileSet(name, scanned.listed(indices), y[indices]) for _, indices in user_split.parts()
    )
    return Parts(training, validation, calibration, user_split.split, test)


def small_image_parts(scanned: Scan, user_split: UserSplit, preprocessing: Preprocessing) -> Parts[Any]:
    """The same, with what a network is trained on in memory, at its size."""
    files = file_parts(scanned, user_split)
    training, validation = (part.shrunk(preprocessing) for part in (files.training, files.validation))
    return Parts(training, validation, files.calibration, user_split.split, files.test)


def sound_parts(scanned: Scan, user_split: UserSplit, features: LogMel) -> Parts[SoundSet]:
    """All parts of a user's sounds, in memory. Without classes the clips of the proper training set are put into kinds that
    sound alike, so that there is something to learn."""
    clips = tuple(sound.at(SOUND_RATE) for sound in scanned.listed())
    y, classes = scanned.y, scanned.classes
    if not classes:
        y = kinds_of([features.decibels(clip.samples) for clip in clips], user_split.split.proper)
        classes = tuple(f"kind {i + 1}" for i in range(int(y.max()) + 1))
    whole = SoundSet(printable(scanned.source), clips, y, classes, np.zeros(len(y), np.int64))
    training, validation, calibration, test = (whole.take(indices) for _, indices in user_split.parts())
    return Parts(training, validation, calibration, user_split.split, test)


def kinds_of(decibels: list[torch.Tensor], proper: NDArray[np.int64]) -> NDArray[np.int64]:
    """Spectrograms (bands, frames) -> kinds (N,), by k-means on the mean and spread of each band. Only the proper training
    set says what the kinds are: calibration and test clips must not."""
    from sklearn.cluster import KMeans

    rows = np.stack([torch.cat([clip.mean(dim=1), clip.std(dim=1)]).double().numpy() for clip in decibels])
    centre, spread = rows[proper].mean(axis=0), rows[proper].std(axis=0) + 1e-6
    rows = (rows - centre) / spread
    count = int(np.clip(len(proper) // 10, 2, MOST_KINDS))
    kinds: NDArray[np.int64] = (
        KMeans(count, n_init=4, random_state=0).fit(rows[proper]).predict(rows).astype(np.int64)
    )
    return kinds


def files_table(scanned: Scan, user_split: UserSplit, known: Sequence[SetToScore] = ()) -> str:
    """files.csv: each file with its part and the hash of its content. Known outliers that chose the model are a part of what it was
    made of, as validation files are."""
    part_of = {int(i): name for name, indices in user_split.parts() for i in indices}
    rows = [
        (file.name, file.label if scanned.classes else "", part_of[i], file.content)
        for i, file in enumerate(scanned.files)
    ]
    rows += [("", part.name, "validation", content) for part in known for content in contents_of(part.points)]
    return csv_text([dict(zip(("file", "label", "part", "content"), row, strict=True)) for row in rows])


def parts_again(record: TrainingRecord, split: Split) -> Parts[Any]:
    """These parts of a detector's own files, read again from where they were; refuses other files."""
    settings = record.settings
    scanned = scan(settings[SOURCE], settings["modality"], settings["labels"])
    if user_dataset(scanned) != record.dataset:
        raise CheckpointError(
            f"The files in {printable(settings[SOURCE])} are not those that {record.recipe} was trained on: expected the same "
            "content. Put them back, or train again."
        )
    user_split = UserSplit(split, np.array([], np.int64))
    if scanned.modality == "audio":
        return sound_parts(scanned, user_split, LogMel(sample_rate=SOUND_RATE))
    return file_parts(scanned, user_split)


def user_dataset(scanned: Scan) -> str:
    """The name of a user's files as a dataset: by their content."""
    return f"own-{scanned.fingerprint[:16]}"
