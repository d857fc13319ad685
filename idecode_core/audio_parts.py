"""Which sounds a recipe trains on, calibrates with and is tested on.

Clips of ESC-50 that were cut from one recording share a fold. Calibration and test clips must be equally new to the
model, or p-values mean nothing; so the calibration set is drawn from a fold of its own, as the test set is.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.audio_recipes import AudioRecipe
from idecode_core.data import data_root
from idecode_core.errors import DataError
from idecode_core.sound_sets import (
    ESC50_CATEGORIES,
    FSD_SETS,
    SoundSet,
    esc50_classes,
    load_fsdnoisy18k,
    load_sounds,
)

ESC50_TRAINING_FOLDS, ESC50_CALIBRATION_FOLDS, ESC50_TEST_FOLDS = (1, 2), (3,), (4,)
DIGITS_TRAINING, DIGITS_CALIBRATION, DIGITS_TEST = (0,), (1,), (2,)
FSD_FOLDER = "FSDnoisy18k"


@dataclass(frozen=True, eq=False)
class Parts:
    """Proper training set, calibration set and iD test set, and the OOD sets by name."""

    training: SoundSet
    calibration: SoundSet
    test: SoundSet
    outside: dict[str, SoundSet]


def load_parts(recipe: AudioRecipe, root: Path | str | None = None) -> Parts:
    parts = {"esc50": _esc50, "spokendigits": _spoken_digits, "fsdnoisy18k": _fsdnoisy18k}[recipe.dataset](
        recipe, root
    )
    if len(parts.calibration) < recipe.calibration_points:
        raise DataError(
            f"{recipe.name} calibrates with {recipe.calibration_points} clips, and only {len(parts.calibration)} are held "
            f"out: expected a complete dataset; get it anew."
        )
    return parts


def choose(count: int, of: int, seed: int) -> NDArray[np.int64]:
    """`count` of `of` places, at random by the seed, in rising order."""
    return np.sort(np.random.default_rng(seed).permutation(of)[:count]).astype(np.int64)


def _esc50(recipe: AudioRecipe, root: Path | str | None) -> Parts:
    sounds = load_sounds("esc50-train", root)
    own = esc50_classes(recipe.part)
    held_out = sounds.where(own, ESC50_CALIBRATION_FOLDS)
    return Parts(
        sounds.where(own, ESC50_TRAINING_FOLDS),
        held_out.take(choose(recipe.calibration_points, len(held_out), recipe.seed)),
        sounds.where(own, ESC50_TEST_FOLDS),
        {
            f"esc50-{other}": sounds.where(esc50_classes(other), ESC50_TEST_FOLDS)
            for other in ESC50_CATEGORIES
            if other != recipe.part
        },
    )


def _spoken_digits(recipe: AudioRecipe, root: Path | str | None) -> Parts:
    digits, others = load_sounds("spokendigits-train", root), load_sounds("othersounds-test", root)
    ten = tuple(range(len(digits.classes)))
    return Parts(
        digits.where(ten, DIGITS_TRAINING),
        digits.where(ten, DIGITS_CALIBRATION),
        digits.where(ten, DIGITS_TEST),
        {name.replace(" ", "-"): others.where((kind,)) for kind, name in enumerate(others.classes)},
    )


def _fsdnoisy18k(recipe: AudioRecipe, root: Path | str | None) -> Parts:
    """App. C.2: as many random calibration clips of each class, the official test part, the other three sets as OOD."""
    folder = data_root(root) / FSD_FOLDER
    own = FSD_SETS[int(recipe.part)]
    sounds = load_fsdnoisy18k(folder, "train", own)
    generator = np.random.default_rng(recipe.seed)
    each = recipe.calibration_points // len(own)
    held_out = np.sort(
        np.concatenate([generator.permutation(np.flatnonzero(sounds.y == c))[:each] for c in range(len(own))])
    )
    return Parts(
        sounds.take(np.setdiff1d(np.arange(len(sounds)), held_out)),
        sounds.take(held_out),
        load_fsdnoisy18k(folder, "test", own),
        {
            f"fsdnoisy18k-set{i}": load_fsdnoisy18k(folder, "test", classes)
            for i, classes in enumerate(FSD_SETS)
            if i != int(recipe.part)
        },
    )
