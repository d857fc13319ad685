"""Datasets by name: `<root>/<name>-<split>.npz` with x (uint8, N x H x W x C) and y.

The data root is an argument, else the variable IDECODE_DATA, else `data/`. A few small sets that may be
passed on are bundled (`embedded`), so that library, app and tests work at once.
"""

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import DataError

EMBEDDED = Path(__file__).parent / "embedded"
TEST_SETS = ("svhn", "cifar100", "tinyimagenet", "isun", "places", "lsunproxy")
"""OOD sets of the vision experiments, in the order of the tables."""


@dataclass(frozen=True)
class ImageSet:
    """Images x (N, H, W, 3), uint8, and their classes y (N,)."""

    name: str
    x: NDArray[np.uint8]
    y: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.x)

    def take(self, indices: NDArray[np.int64]) -> "ImageSet":
        return ImageSet(self.name, self.x[indices], self.y[indices])

    def only(self, classes: Sequence[int]) -> "ImageSet":
        return self.take(np.flatnonzero(np.isin(self.y, classes)))


def data_root(root: Path | str | None = None) -> Path:
    return Path(root or os.environ.get("IDECODE_DATA") or "data")


def load_images(name: str, root: Path | str | None = None) -> ImageSet:
    """Load "cifar10-train" and the like, from the data root or from the bundled sets."""
    path = data_root(root) / f"{name}.npz"
    if not path.exists():
        bundled = EMBEDDED / f"{name}.npz"
        if not bundled.exists():
            dataset = name.rsplit("-", 1)[0]
            raise DataError(
                f"The dataset {name!r} is not here: looked for {path}. Get it with "
                f"`python -m idecode_core data fetch {dataset}` (needs internet), or point --data-root or "
                f"IDECODE_DATA to the folder that has it."
            )
        path = bundled
    try:
        with np.load(path, allow_pickle=False) as arrays:
            x, y = arrays["x"], arrays["y"]
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path} is not a dataset: expected an npz file with arrays x and y, got {error}; make it anew."
        ) from error
    if x.ndim == 3:  # bundled grey images are stored without the colour axis
        x = np.repeat(x[..., None], 3, axis=3)
    if x.dtype != np.uint8 or x.ndim != 4 or x.shape[3] != 3 or len(x) != len(y):
        raise DataError(
            f"{path} is not a set of images: expected x uint8 (N, H, W, 3) and as many y, got x {x.dtype} "
            f"{x.shape} and y {y.shape}; make it anew."
        )
    return ImageSet(name, x, y.astype(np.int64))


@dataclass(frozen=True)
class Split:
    """Random parts of a training set: proper training (with a validation part taken out of it) and calibration."""

    proper: NDArray[np.int64]
    validation: NDArray[np.int64]
    calibration: NDArray[np.int64]


def split_indices(size: int, *, seed: int, calibration: float = 0.1, validation: float = 0.05) -> Split:
    """Random 90/10 split (App. C.1.1); the validation part comes out of the proper training set."""
    order = np.random.default_rng(seed).permutation(size)
    k = round(size * calibration)
    v = round((size - k) * validation)
    return Split(np.sort(order[k + v :]), np.sort(order[k : k + v]), np.sort(order[:k]))


def class_names(dataset: str) -> tuple[str, ...]:
    return {
        "cifar10": ("airplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        "fashion": (
            "T-shirt",
            "trousers",
            "pullover",
            "dress",
            "coat",
            "sandal",
            "shirt",
            "sneaker",
            "bag",
            "boot",
        ),
    }.get(dataset, ())
