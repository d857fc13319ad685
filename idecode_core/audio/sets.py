"""Sounds by name: `<root>/<name>-<split>.npz` (clips end to end), or the official FSDnoisy18k folder.

ESC-50's five categories of ten classes stand in for the paper's four sets of FSDnoisy18k, which are here as well
for machines that have that dataset.

Sounds that come with the project, to try a detector at once: spoken digits, and other things.

Digits and formula sounds are made by tools/make_spoken_digits.py; the recordings are from Debian's package
sound-theme-freedesktop, unchanged (licences: embedded/sounds/README.md).
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.audio.read import Sound, read_sound
from idecode_core.data import EMBEDDED, data_root
from idecode_core.errors import DataError
from idecode_core.files.read import DATASET_BYTES, read_arrays

ESC50_CATEGORIES = ("animals", "nature", "human", "domestic", "urban")
CLASSES_PER_CATEGORY = 10
FSD_SETS = (  # App. C.2
    ("Acoustic_guitar", "Bass_guitar", "Clapping", "Coin_(dropping)", "Crash_cymbal"),
    ("Dishes_and_pots_and_pans", "Engine", "Fart", "Fire", "Fireworks"),
    ("Glass", "Hi-hat", "Piano", "Rain", "Slam"),
    ("Squeak", "Tearing", "Walk_or_footsteps", "Wind", "Writing"),
)


@dataclass(frozen=True, eq=False)
class SoundSet:
    """Clips with their classes y (N,), the classes' names, and folds (N,): clips of one recording share a fold."""

    name: str
    clips: tuple[Sound, ...]
    y: NDArray[np.int64]
    classes: tuple[str, ...]
    fold: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.clips)

    @property
    def samples(self) -> tuple[Sound, ...]:
        """What a scorer takes."""
        return self.clips

    def take(self, indices: NDArray[np.int64]) -> "SoundSet":
        clips = tuple(self.clips[i] for i in indices)
        return SoundSet(self.name, clips, self.y[indices], self.classes, self.fold[indices])

    def where(self, classes: Sequence[int], folds: Sequence[int] | None = None) -> "SoundSet":
        """The clips of these classes (numbered from 0, in their order here) and folds."""
        chosen = np.isin(self.y, classes) & (np.isin(self.fold, folds) if folds is not None else True)
        part = self.take(np.flatnonzero(chosen))
        y = np.array([list(classes).index(label) for label in part.y], np.int64)
        return SoundSet(part.name, part.clips, y, tuple(self.classes[c] for c in classes), part.fold)


def load_sounds(name: str, root: Path | str | None = None) -> SoundSet:
    """Load "esc50-train" and the like: an npz with x (int16, all clips end to end), offsets, y, sample_rate, classes."""
    path = data_root(root) / f"{name}.npz"
    if not path.exists():
        raise DataError(
            f"The sounds {name!r} are not here: looked for {path}. Point --data-root or IDECODE_DATA to the folder that "
            f"has them."
        )
    arrays = read_arrays(
        path,
        ("x", "offsets", "y", "sample_rate", "classes"),
        what="a set of sounds, an npz file with x, offsets, y, sample_rate and classes",
        error=DataError,
        hint="Make it again.",
        most_bytes=DATASET_BYTES,
    )
    try:
        x, offsets, y = arrays["x"], arrays["offsets"], arrays["y"].astype(np.int64)
        rate, classes = int(arrays["sample_rate"]), tuple(str(c) for c in arrays["classes"])
        fold = arrays["fold"].astype(np.int64) if "fold" in arrays else np.zeros(len(y), np.int64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{path} is not a set of sounds: {error}. Make it again.") from error
    if x.dtype != np.int16 or x.ndim != 1 or len(offsets) != len(y) + 1 or offsets[-1] != len(x):
        raise DataError(
            f"{path} is not a set of sounds: expected int16 samples cut at {len(y) + 1} offsets, got {x.dtype} {x.shape} "
            f"and {len(offsets)} offsets; make it again."
        )
    clips = tuple(Sound(x[a:b].astype(np.float32) / np.float32(32768), rate) for a, b in pairwise(offsets))
    return SoundSet(name, clips, y, classes, fold)


def esc50_classes(category: str) -> tuple[int, ...]:
    """The ten class numbers of one of ESC-50's categories."""
    first = CLASSES_PER_CATEGORY * ESC50_CATEGORIES.index(category)
    return tuple(range(first, first + CLASSES_PER_CATEGORY))


def load_fsdnoisy18k(folder: Path | str, part: str, classes: Sequence[str]) -> SoundSet:
    """The verified clips of `classes` in the official FSDnoisy18k folder; part is "train" or "test".

    Expects FSDnoisy18k.audio_train/, FSDnoisy18k.audio_test/ and FSDnoisy18k.meta/, as they are unpacked. In the
    training part only manually verified labels count, as in the paper; every test label is verified.
    """
    folder = Path(folder)
    table = folder / "FSDnoisy18k.meta" / f"{part}.csv"
    try:
        with table.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        chosen = [row for row in rows if row["label"] in classes and row.get("manually_verified", "1") == "1"]
    except (OSError, KeyError, UnicodeDecodeError) as error:
        raise DataError(
            f"{folder} is not FSDnoisy18k: expected {table.relative_to(folder)} with columns fname, label and "
            f"manually_verified, got {error}. Unpack the official archives there."
        ) from error
    if not chosen:
        raise DataError(
            f"{table}: expected clips of {', '.join(classes)}, got none. Unpack the official archives again."
        )
    clips = tuple(read_sound(folder / f"FSDnoisy18k.audio_{part}" / row["fname"]) for row in chosen)
    y = np.array([list(classes).index(row["label"]) for row in chosen], np.int64)
    return SoundSet(f"fsdnoisy18k-{part}", clips, y, tuple(classes), np.zeros(len(y), np.int64))


FOLDER = EMBEDDED / "sounds"
LABELS = {"digit": "spoken digits", "other": "made sounds", "recorded": "recordings"}


@dataclass(frozen=True)
class GallerySound:
    """A bundled file, what it is called, and whether it is OOD for the detector `spoken-digits`."""

    name: str
    is_ood: bool
    path: Path


def gallery_sounds() -> list[GallerySound]:
    """The bundled sounds, digits first."""
    sounds = []
    for path in sorted(FOLDER.glob("*.flac")) + sorted(FOLDER.glob("*.oga")):
        kind, _, rest = path.stem.partition("-")
        name = rest.partition("-")[2] if kind == "digit" else rest.replace("-", " ")
        sounds.append(GallerySound(name, kind != "digit", path))
    return sorted(sounds, key=lambda sound: (sound.is_ood, sound.path.name))


def bundled_sounds(dataset: str = "") -> dict[str, list[Sound]]:
    """Label -> the bundled sounds of that kind; without spoken digits where these are the dataset."""
    by_label: dict[str, list[Sound]] = {}
    for sound in gallery_sounds():
        if sound.is_ood or dataset != "spokendigits":
            kind = sound.path.stem.partition("-")[0]
            by_label.setdefault(LABELS.get(kind, kind), []).append(
                read_sound(sound.path.read_bytes(), name=sound.name)
            )
    return by_label
