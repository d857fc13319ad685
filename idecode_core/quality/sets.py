"""Which sets a detector is tested on, and which of their points."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.audio.sets import SoundSet
from idecode_core.errors import DataError
from idecode_core.folder.shelf import CALIBRATION
from idecode_core.image.sets import TEST_SETS, ImageSet, class_names, dataset_and_class, load_images

ID_POINTS, OOD_POINTS = 2000, 1000
POINTS_PER_CLASS = 100
"""Of each other class, where one class is known."""
DEVELOPMENT = slice(400, 700)
"""Which places of a set's random order are for choosing, and so are never in a table (research/development.py)."""
SAMPLES = ("digits-sample", "photos-sample", "textures-sample")
"""Small bundled sets. Only Fashion-MNIST's table has them, for which nothing was chosen on development data: all of their
points are in it."""
LABELS = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "svhn": "SVHN",
    "tinyimagenet": "Tiny-ImageNet",
    "isun": "iSUN",
    "places": "Places",
    "lsunproxy": "LSUN proxy",
    "lsun": "LSUN",
    "places365": "Places365",
    "fashion": "Fashion-MNIST",
    "digits": "Handwritten digits",
    "photos": "Photographs",
    "textures": "Textures",
    "spokendigits": "Spoken digits",
    "esc50": "ESC-50",
    "fsdnoisy18k": "FSDnoisy18k",
}


def label(name: str) -> str:
    """A set's name for readers.

    >>> label("svhn-test"), label("esc50-urban"), label("plucked-string")
    ('SVHN', 'ESC-50 urban', 'plucked string')
    """
    dataset, *rest = name.split("-")
    words = [LABELS.get(dataset, dataset), *(word for word in rest if word not in ("test", "sample"))]
    return " ".join(words)


@dataclass(frozen=True, eq=False)
class SetToScore:
    """A set of test points by its name, and whether it is OOD for the detector. The calibration set may be among them."""

    name: str
    is_ood: bool
    points: Any
    """Pictures (N, h, w, 3) or clips, as the scorer takes them."""

    def __len__(self) -> int:
        return len(self.points)

    @property
    def is_calibration(self) -> bool:
        return self.name == CALIBRATION


def image_set_names(dataset: str) -> list[str]:
    """The iD test set of a detector for `dataset`, then the OOD sets of its tables."""
    if dataset.startswith("fashion"):
        return ["fashion-test", *SAMPLES, "cifar10-test", "svhn-test"]
    others = TEST_SETS if dataset == "cifar10" else ("cifar10", *TEST_SETS)
    return [f"{dataset}-test", *(f"{name}-test" for name in others if name != dataset)]


def image_sets(
    dataset: str,
    data_root: Path | str | None = None,
    id_points: int = ID_POINTS,
    ood_points: int = OOD_POINTS,
) -> Iterator[SetToScore]:
    """The sets of pictures, one after the other. One that is not in the data root is left out, but not the iD test set."""
    whole, only = dataset_and_class(dataset)
    if only is not None:
        yield from one_class_sets(load_images(f"{whole}-test", data_root), only, id_points)
        return
    known, *_ = names = image_set_names(dataset)
    for name in names:
        try:
            images = load_images(name, data_root)
        except DataError:
            if name == known:
                raise
            continue
        yield SetToScore(
            name, name != known, pick(images, id_points if name == known else ood_points).samples
        )


def one_class_sets(test: ImageSet, only: int, id_points: int = ID_POINTS) -> Iterator[SetToScore]:
    """One class of a test set, and each other class as a set that is OOD for it."""
    dataset = test.name.rsplit("-", 1)[0]
    for number, name in enumerate(class_names(dataset)):
        is_known = number == only
        points = pick(test.only([number]), id_points if is_known else POINTS_PER_CLASS)
        yield SetToScore(f"{dataset}-{name}", not is_known, points.samples)


def sound_sets(
    name: str, test: SoundSet, outside: Mapping[str, SoundSet], calibration: SoundSet
) -> Iterator[SetToScore]:
    """The iD test set, the OOD sets by their names, and the calibration set, which SBP and other base NCMs need too."""
    yield SetToScore(name, False, test.samples)
    for other, sounds in outside.items():
        yield SetToScore(other, True, sounds.samples)
    yield SetToScore(CALIBRATION, False, calibration.samples)


def pick(images: ImageSet, count: int, seed: int = 0) -> ImageSet:
    """`count` points for a table, chosen at random by the seed, in the set's own order; all there are for tables when
    these are fewer. Points in the places of DEVELOPMENT are for choosing only."""
    order = random_order(images, seed)
    if images.name not in SAMPLES:
        order = np.concatenate([order[: DEVELOPMENT.start], order[DEVELOPMENT.stop :]])
    return images.take(np.sort(order[:count]))


def random_order(images: ImageSet, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng([seed, len(images)]).permutation(len(images))
