"""The parts of a user's own files: to fit, to validate, to calibrate, to test, split at random and stored by content.

Calibration and test files must be equally new to the model, so the split is a random one of different files.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from idecode_core.audio.features import LogMel
from idecode_core.audio.read import read_sound
from idecode_core.audio.sets import SoundSet
from idecode_core.errors import CheckpointError, InputError
from idecode_core.files.cells import defused
from idecode_core.files.names import NOUNS, printable
from idecode_core.folder.training_record import Split, TrainingRecord
from idecode_core.image.features import Preprocessing
from idecode_core.image.read import read_image
from idecode_core.image.sets import ImageSet
from idecode_core.training.own.files import Scan, scan
from idecode_core.training.parts import Parts

FEWEST = 40
"""Files that a detector can be made of: fewer leave too few for each part."""
SHARES = {"validation": (0.1, 1000), "calibration": (0.3, 2000), "test": (0.15, 2000)}
"""Of the files, and at most so many; the rest is the proper training set."""
SOUND_RATE = 16_000
MOST_KINDS = 8
SOURCE = "source"
"""Where a training record's settings say which folder the files came from; only those of own data do."""


@dataclass(frozen=True, eq=False)
class FileSet:
    """Pictures that stay on disk, so that memory does not grow with them; y (N,) are their classes."""

    name: str
    paths: tuple[Path, ...]
    y: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def samples(self) -> list[Path]:
        """What a scorer takes."""
        return list(self.paths)

    def take(self, indices: NDArray[np.int64]) -> "FileSet":
        return FileSet(self.name, tuple(self.paths[i] for i in indices), self.y[indices])

    def shrunk(self, preprocessing: Preprocessing) -> ImageSet:
        """All pictures at a small network's size, in memory."""
        pixels = [preprocessing(read_image(path)) for path in self.paths]
        return ImageSet(self.name, np.stack(pixels), self.y)


@dataclass(frozen=True)
class OwnSplit:
    """A split with its test part, all as indices of a scan's files."""

    split: Split
    test: NDArray[np.int64]

    def parts(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        yield from vars(self.split).items()
        yield "test", self.test


def split_own(found: Scan, seed: int = 0) -> OwnSplit:
    """A random split; InputError when there are too few files."""
    count, noun = len(found.files), NOUNS[found.modality]
    if count < FEWEST:
        left_out = len(found.broken) + len(found.copies)
        also = f" ({left_out} more cannot be read or are copies)" if left_out else ""
        raise InputError(
            f"{printable(found.source)}: expected at least {FEWEST} different {noun}s, got {count}{also}. Add {noun}s of what "
            "belongs; 300 make a good start."
        )
    order = np.random.default_rng([seed, count]).permutation(count)
    cut, taken = 0, {}
    for name, (share, most) in SHARES.items():
        size = min(round(share * count), most)
        taken[name] = np.sort(order[cut : cut + size])
        cut += size
    return OwnSplit(Split(np.sort(order[cut:]), taken["validation"], taken["calibration"]), taken["test"])


def file_parts(found: Scan, own: OwnSplit) -> Parts[Any]:
    """All parts of a user's pictures, on disk."""
    whole = FileSet(printable(found.source), tuple(file.path for file in found.files), found.y)
    training, validation, calibration, test = (whole.take(indices) for _, indices in own.parts())
    return Parts(training, validation, calibration, own.split, test)


def small_image_parts(found: Scan, own: OwnSplit, preprocessing: Preprocessing) -> Parts[Any]:
    """The same, with what a network is trained on in memory, at its size."""
    files = file_parts(found, own)
    training, validation = (part.shrunk(preprocessing) for part in (files.training, files.validation))
    return Parts(training, validation, files.calibration, own.split, files.test)


def sound_parts(found: Scan, own: OwnSplit, features: LogMel) -> Parts[SoundSet]:
    """All parts of a user's sounds, in memory. Without classes the clips of the proper training set are put into kinds that
    sound alike, so that there is something to learn."""
    clips = tuple(read_sound(file.path).at(SOUND_RATE) for file in found.files)
    y, classes = found.y, found.classes
    if not classes:
        y = kinds_of([features.decibels(clip.samples) for clip in clips], own.split.proper)
        classes = tuple(f"kind {i + 1}" for i in range(int(y.max()) + 1))
    whole = SoundSet(printable(found.source), clips, y, classes, np.zeros(len(y), np.int64))
    training, validation, calibration, test = (whole.take(indices) for _, indices in own.parts())
    return Parts(training, validation, calibration, own.split, test)


def kinds_of(decibels: list[torch.Tensor], proper: NDArray[np.int64]) -> NDArray[np.int64]:
    """Spectrograms (bands, frames) -> kinds (N,), by k-means on the mean and spread of each band. Only the proper training
    set says what the kinds are: calibration and test clips must not."""
    from sklearn.cluster import KMeans

    rows = np.stack([torch.cat([one.mean(dim=1), one.std(dim=1)]).double().numpy() for one in decibels])
    centre, spread = rows[proper].mean(axis=0), rows[proper].std(axis=0) + 1e-6
    rows = (rows - centre) / spread
    count = int(np.clip(len(proper) // 10, 2, MOST_KINDS))
    kinds: NDArray[np.int64] = (
        KMeans(count, n_init=4, random_state=0).fit(rows[proper]).predict(rows).astype(np.int64)
    )
    return kinds


def files_table(found: Scan, own: OwnSplit) -> str:
    """files.csv: each file with its part and the hash of its content."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["file", "label", "part", "content"])
    part_of = {int(i): name for name, indices in own.parts() for i in indices}
    for i, file in enumerate(found.files):
        label = file.label if found.classes else ""
        writer.writerow([defused(file.name), defused(label), part_of[i], file.content])
    return text.getvalue()


def parts_again(record: TrainingRecord, split: Split) -> Parts[Any]:
    """The parts of a detector's own files, read again from where they were; refuses other files."""
    settings = record.settings
    found = scan(settings[SOURCE], settings["modality"], settings["labels"])
    own = split_own(found, record.seed)
    if own_dataset(found) != record.dataset or len(own.split.calibration) != len(split.calibration):
        raise CheckpointError(
            f"The files in {printable(settings[SOURCE])} are not those that {record.recipe} was trained on: expected the same "
            "content. Put them back, or train again."
        )
    if found.modality == "audio":
        return sound_parts(found, own, LogMel(sample_rate=SOUND_RATE))
    return file_parts(found, own)


def own_dataset(found: Scan) -> str:
    """The name of a user's files as a dataset: by their content."""
    return f"own-{found.fingerprint[:16]}"
