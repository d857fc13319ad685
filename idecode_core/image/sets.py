"""Sets of pictures by name: `<root>/<name>-<split>.npz` with x (uint8, N x H x W x C) and y, or bundled."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.data import EMBEDDED, data_root
from idecode_core.errors import DataError
from idecode_core.files.read import DATASET_BYTES, read_arrays

TEST_SETS = ("svhn", "cifar100", "tinyimagenet", "isun", "places", "lsunproxy")
"""OOD sets of the vision experiments, in the order of the tables."""
PER_SET = 20  # pictures of each bundled set: a glance, not a benchmark
BUNDLED = {
    "digits": "digits",
    "photos": "photographs",
    "textures": "textures",
    "fashion": "clothing",
    "cifar10": "CIFAR-10",
}


@dataclass(frozen=True)
class ImageSet:
    """Images x (N, H, W, 3), uint8, and their classes y (N,)."""

    name: str
    x: NDArray[np.uint8]
    y: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.x)

    @property
    def samples(self) -> NDArray[np.uint8]:
        """What a scorer takes."""
        return self.x

    def take(self, indices: NDArray[np.int64]) -> "ImageSet":
        return ImageSet(self.name, self.x[indices], self.y[indices])

    def only(self, classes: Sequence[int]) -> "ImageSet":
        return self.take(np.flatnonzero(np.isin(self.y, classes)))


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
    arrays = read_arrays(
        path,
        ("x", "y"),
        what="a dataset, an npz file with arrays x and y",
        error=DataError,
        hint="Make it again.",
        most_bytes=DATASET_BYTES,
    )
    x, y = arrays["x"], arrays["y"]
    if x.ndim == 3:  # bundled grey images are stored without the colour axis
        x = np.repeat(x[..., None], 3, axis=3)
    if x.dtype != np.uint8 or x.ndim != 4 or x.shape[3] != 3 or len(x) != len(y):
        raise DataError(
            f"{path} is not a set of images: expected x uint8 (N, H, W, 3) and as many y, got x {x.dtype} "
            f"{x.shape} and y {y.shape}; make it again."
        )
    return ImageSet(name, x, y.astype(np.int64))


def bundled_pictures(dataset: str = "") -> dict[str, NDArray[np.uint8]]:
    """Label -> some pictures of each bundled set, from all over it; all but those of this dataset, or of its one class."""
    galleries = {}
    known, only = dataset_and_class(dataset)
    for name, label in BUNDLED.items():
        if name != known or only is not None:
            images = load_images(f"{name}-sample")
            x = images.x[images.y != only] if name == known else images.x
            galleries[label] = x[np.linspace(0, len(x) - 1, min(PER_SET, len(x))).astype(int)]
    return galleries


def dataset_and_class(identity: str) -> tuple[str, int | None]:
    """What a detector says it knows -> the dataset, and the one class of it where it knows only one.

    >>> dataset_and_class("cifar10/horse"), dataset_and_class("cifar10")
    (('cifar10', 7), ('cifar10', None))
    """
    dataset, _, name = identity.partition("/")
    if name in class_names(dataset):
        return dataset, class_names(dataset).index(name)
    return identity, None  # a whole dataset, or something that is not known here


def class_names(dataset: str) -> tuple[str, ...]:
    names = {
        "cifar10": "airplane car bird cat deer dog frog horse ship truck",
        "fashion": "T-shirt trousers pullover dress coat sandal shirt sneaker bag boot",
    }
    return tuple(names.get(dataset, "").split())
