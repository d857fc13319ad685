"""Data for choosing: neither calibration nor test. Members and weights of a merged detector are chosen on it.

In-distribution: the validation part of CIFAR-10's training set. OOD: real objects of other kinds (75 classes of
Caltech-101, none that could pass for one of CIFAR-10's), drawn house numbers, generated textures and two photographs. The
OOD sets of the tables are used for no choice, and none of these shares a source with them: up to issue 27 four
superclasses of CIFAR-100's training split stood where the objects stand now, and the tables of then in docs/ say so.
"""

from pathlib import Path

import numpy as np

from idecode_core.folder.record import Split
from idecode_core.image.sets import ImageSet, load_images
from idecode_core.quality.score_sets import DEVELOPMENT, random_order


def validation_images(split: Split, data_root: Path | str | None = None) -> ImageSet:
    """The iD side: points of the proper training set that no model was fitted to."""
    return load_images("cifar10-train", data_root).take(split.validation)


def development_sets(data_root: Path | str | None = None) -> dict[str, ImageSet]:
    """The OOD side, by name."""
    return {
        "objects": load_images("objects-dev", data_root),
        "house numbers": house_numbers(
            load_images("digits-sample", data_root), generator=np.random.default_rng(0)
        ),
        "textures": load_images("textures-sample", data_root),
        "photographs": load_images("photos-sample", data_root),
    }


def other_points(images: ImageSet) -> ImageSet:
    """Points of a test set that earlier choices saw (docs/merging.md), and that `pick` leaves out of the tables for it."""
    return images.take(np.sort(random_order(images)[DEVELOPMENT]))


def house_numbers(digits: ImageSet, *, generator: np.random.Generator, side: int = 32) -> ImageSet:
    """Two digits side by side in one random colour on another, with a gradient of light and some noise."""
    pictures = np.empty((len(digits), side, side, 3), np.uint8)
    half = side // 2
    for i in range(len(digits)):
        left, right = digits.x[i, ..., 0], digits.x[generator.integers(len(digits)), ..., 0]
        ink = np.zeros((side, side))
        for column, digit in ((0, left), (half, right)):
            rows = np.linspace(0, digit.shape[0] - 1, side - 8).astype(int)
            columns = np.linspace(0, digit.shape[1] - 1, half).astype(int)
            ink[4 : side - 4, column : column + half] = digit[np.ix_(rows, columns)] / 255
        front, back = generator.random((2, 3))
        light = np.linspace(-1, 1, side) * generator.uniform(-0.2, 0.2)
        picture = back + ink[..., None] * (front - back) + light[:, None, None]
        picture += generator.normal(0, 0.03, size=picture.shape)
        pictures[i] = np.clip(255 * picture, 0, 255).astype(np.uint8)
    return ImageSet("house numbers", pictures, digits.y)
