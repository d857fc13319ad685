"""The parts of a recipe's data: what M is trained on, what chooses the epoch, what calibrates, what tests.

Calibration and test points must be equally new to the model, or p-values mean nothing. Pictures are split at random
(App. C.1.1). Clips of ESC-50 that were cut from one recording share a fold, so its calibration set comes from a fold of
its own, as its test set does.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from idecode_core.audio.sets import (
    ESC50_CATEGORIES,
    FSD_SETS,
    SoundSet,
    esc50_classes,
    load_fsdnoisy18k,
    load_sounds,
)
from idecode_core.data import data_root
from idecode_core.errors import DataError
from idecode_core.folder.record import Split, read_split, split_indices
from idecode_core.image.sets import ImageSet, load_images
from idecode_core.training.recipe import Pictures, Recipe, Sounds

CALIBRATION_POINTS = 5000
FEWEST_PICTURES = 12  # fewer leave nothing to choose the epoch with
ESC50_TRAINING_FOLDS, ESC50_CALIBRATION_FOLDS, ESC50_TEST_FOLDS = (1, 2), (3,), (4,)
DIGITS_TRAINING, DIGITS_CALIBRATION, DIGITS_TEST = (0,), (1,), (2,)
FSD_FOLDER = "FSDnoisy18k"
Set = TypeVar("Set", ImageSet, SoundSet)
Root = Path | str | None


@dataclass(frozen=True, eq=False)
class Parts(Generic[Set]):
    """Proper training set, validation part (empty where there are too few points), calibration set; where known, the
    iD test set and OOD sets by name."""

    training: Set
    validation: Set
    calibration: Set
    split: Split
    test: Set | None = None
    outside: dict[str, Set] = field(default_factory=dict)


def calibration_indices(split: Split, most: int = CALIBRATION_POINTS) -> NDArray[np.int64]:
    """At most this many of the held-out points, chosen at random by a fixed seed."""
    if len(split.calibration) <= most:
        return split.calibration
    return np.sort(np.random.default_rng(0).permutation(split.calibration)[:most])


def divide(
    whole: Set, split: Split, test: Set | None = None, outside: dict[str, Set] | None = None
) -> Parts[Set]:
    """The parts of a training set by a split."""
    indices = (split.proper, split.validation, calibration_indices(split))
    training, validation, calibration = (whole.take(chosen) for chosen in indices)
    return Parts(training, validation, calibration, split, test, outside or {})


def load_parts(recipe: Recipe[Any], root: Root = None, split: Split | None = None) -> Parts[Any]:
    """The parts of a recipe's data, from the data root; pictures also by another split than the recipe's own."""
    if isinstance(recipe.shows, Pictures):
        return image_parts(recipe, load_images(f"{recipe.dataset}-train", root), root, split)
    parts: Parts[SoundSet] = SOUNDS[recipe.dataset](recipe, root)
    if len(parts.calibration) < recipe.shows.calibration_points:
        raise DataError(
            f"{recipe.name} calibrates with {recipe.shows.calibration_points} clips, and only {len(parts.calibration)} "
            f"are held out: expected a complete dataset; get it again."
        )
    return parts


def image_parts(
    recipe: Recipe[Pictures], images: ImageSet, root: Root = None, split: Split | None = None
) -> Parts[ImageSet]:
    """A random split of the images, or the one that is given. The test set is loaded where M is a classifier and it is available."""
    images = images.only(recipe.shows.classes) if recipe.shows.classes else images
    if len(images) < FEWEST_PICTURES:
        raise DataError(
            f"{recipe.name} has {len(images)} pictures to learn from: expected at least {FEWEST_PICTURES}, so that some "
            f"train, some choose the epoch and some calibrate. Check that {recipe.dataset} has the classes "
            f"{recipe.shows.classes or 'that are expected'}."
        )
    test = None
    if recipe.learns_labels:
        with suppress(DataError):  # the record then has no test accuracy
            test = load_images(f"{recipe.dataset}-test", root)
    return divide(images, split or image_split(recipe, len(images)), test)


def image_split(recipe: Recipe[Pictures], points: int) -> Split:
    """A random split by the recipe's seed. One that starts from a trained network, or is to be merged with it, keeps that
    one's proper training set, and draws its own validation part and calibration set from what that one held out."""
    other = Path(recipe.shows.start_from or recipe.shows.split_of)
    before = read_split(other) if (other / "split.npz").is_file() else None
    if before is None or before.points != points:
        if recipe.shows.split_of:
            got = "no split.npz" if before is None else f"a split of {before.points:,}"
            raise DataError(
                f"{recipe.name} holds out the points of {other}: expected its split of {points:,} pictures, got {got}. "
                f"Train that one first, on the same data: python -m idecode_core train {other.name} --out {other}"
            )
        return split_indices(points, seed=recipe.seed)  # training says what it cannot start from
    held_out = np.sort(np.concatenate([before.validation, before.calibration]))
    order = np.random.default_rng(recipe.seed).permutation(held_out)
    k = len(before.calibration)
    return Split(before.proper, np.sort(order[k:]), np.sort(order[:k]))


def by_fold(
    sounds: SoundSet, training: Sequence[int], calibration: Sequence[int], most: int, seed: int
) -> Split:
    """Whole folds; of the calibration fold at most `most` clips, at random by the seed."""
    held_out = np.flatnonzero(np.isin(sounds.fold, calibration))
    chosen = np.sort(np.random.default_rng(seed).permutation(len(held_out))[:most])
    return without_validation(np.flatnonzero(np.isin(sounds.fold, training)), held_out[chosen])


def without_validation(proper: NDArray[np.int64], calibration: NDArray[np.int64]) -> Split:
    return Split(proper, np.empty(0, np.int64), calibration)


def _esc50(recipe: Recipe[Sounds], root: Root) -> Parts[SoundSet]:
    sounds = load_sounds("esc50-train", root)
    shows = recipe.shows
    known = sounds.where(esc50_classes(shows.part))
    split = by_fold(
        known, ESC50_TRAINING_FOLDS, ESC50_CALIBRATION_FOLDS, shows.calibration_points, recipe.seed
    )
    tests = {c: sounds.where(esc50_classes(c), ESC50_TEST_FOLDS) for c in ESC50_CATEGORIES}
    test = tests.pop(shows.part)
    return divide(known, split, test, {f"esc50-{category}": part for category, part in tests.items()})


def _spoken_digits(recipe: Recipe[Sounds], root: Root) -> Parts[SoundSet]:
    digits, others = load_sounds("spokendigits-train", root), load_sounds("othersounds-test", root)
    split = by_fold(digits, DIGITS_TRAINING, DIGITS_CALIBRATION, recipe.shows.calibration_points, recipe.seed)
    outside = {name.replace(" ", "-"): others.where((kind,)) for kind, name in enumerate(others.classes)}
    return divide(digits, split, digits.take(np.flatnonzero(np.isin(digits.fold, DIGITS_TEST))), outside)


def _fsdnoisy18k(recipe: Recipe[Sounds], root: Root) -> Parts[SoundSet]:
    """App. C.2: as many random calibration clips of each class, the official test part, the other three sets as OOD."""
    folder = data_root(root) / FSD_FOLDER
    number = int(recipe.shows.part)
    known = FSD_SETS[number]
    sounds = load_fsdnoisy18k(folder, "train", known)
    generator = np.random.default_rng(recipe.seed)
    per_class = recipe.shows.calibration_points // len(known)
    drawn = [generator.permutation(np.flatnonzero(sounds.y == c))[:per_class] for c in range(len(known))]
    held_out = np.sort(np.concatenate(drawn))
    tests = [load_fsdnoisy18k(folder, "test", classes) for classes in FSD_SETS]
    return divide(
        sounds,
        without_validation(np.setdiff1d(np.arange(len(sounds)), held_out), held_out),
        tests[number],
        {f"fsdnoisy18k-set{i}": part for i, part in enumerate(tests) if i != number},
    )


SOUNDS = {"esc50": _esc50, "spokendigits": _spoken_digits, "fsdnoisy18k": _fsdnoisy18k}
