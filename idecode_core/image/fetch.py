"""Datasets through torchvision, stored as `<root>/<name>-<split>.npz`: x uint8 (N, H, W, 3) and y.

Downloads are kept in `<root>/raw`, so that a second try need not start over.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
from numpy.typing import NDArray

from idecode_core.data import EMBEDDED
from idecode_core.errors import DataError, SettingError
from idecode_core.files import write_npz
from idecode_core.files.read import DAMAGE, declared_shape, reason
from idecode_core.image.features import Preprocessing

GALLERY = "attacked-gallery"  # lies beside the bundled sets, and is none
PHOTO_SIDE, MOST_PHOTOS = 64, 10_000
"""Pixels: large photographs are stored at this side, resizing to the model's size is the detector's job; and a random sample of
this size is kept of a set of them, as many as LSUN's test set."""


@dataclass(frozen=True)
class Origin:
    """Where a dataset comes from: `open(raw folder, split)` downloads it and gives images with their classes."""

    name: str
    splits: tuple[str, ...]
    open: Callable[[Path, str], Any]
    large: bool = False
    """Photographs of various sizes, to be cut to a square of 64 px."""


def _torchvisions(name: str, options: Callable[[str], dict[str, Any]]) -> Callable[[Path, str], Any]:
    """`open` of a Origin: torchvision's dataset of this name, with the options that choose a split."""

    def open_split(raw: Path, split: str) -> Any:
        dataset = getattr(import_module("torchvision.datasets"), name)
        return dataset(str(raw), download=True, **options(split))

    return open_split


def _by_flag(split: str) -> dict[str, Any]:
    return {"train": split == "train"}


def _by_name(split: str) -> dict[str, Any]:
    return {"split": split}


def _places365(raw: Path, split: str) -> Any:
    from torchvision.datasets import Places365

    folder = raw / "places365"
    folder.mkdir(parents=True, exist_ok=True)
    return Places365(folder, split="val", small=True, download=True)


def _lsun(raw: Path, split: str) -> Any:
    from torchvision.datasets import LSUN

    if not (raw / "test_lmdb").exists():
        # No other source here is without a checksum: what comes over plain http could be anything.
        raise DataError(
            "LSUN is only offered over an unencrypted connection and without a checksum, so it is not downloaded: expected its "
            f"folder test_lmdb in {raw}. Get test_lmdb.zip from the makers of LSUN, unpack it there, then try again."
        )
    try:
        import lmdb  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    except ImportError:
        raise DataError(
            "LSUN comes as an LMDB database: expected the package lmdb, which is not installed. Run `pip install lmdb`, "
            "then try again."
        ) from None
    return LSUN(str(raw), classes=split)


SOURCES: dict[str, Origin] = {
    source.name: source
    for source in (
        Origin("cifar10", ("train", "test"), _torchvisions("CIFAR10", _by_flag)),
        Origin("cifar100", ("train", "test"), _torchvisions("CIFAR100", _by_flag)),
        Origin("svhn", ("train", "test"), _torchvisions("SVHN", _by_name)),
        Origin("fashion", ("train", "test"), _torchvisions("FashionMNIST", _by_flag)),
        Origin("lsun", ("test",), _lsun, large=True),
        Origin("places365", ("test",), _places365, large=True),
        Origin("dtd", ("test",), _torchvisions("DTD", _by_name), large=True),
    )
}


def check_names(names: Iterable[str]) -> None:
    for name in names:
        if name not in SOURCES:
            raise SettingError(
                f"No dataset called {name!r} can be fetched: expected one of {', '.join(SOURCES)}."
            )


def fetch(name: str, root: Path, *, report: Callable[[str], None] = lambda sentence: None) -> Iterator[Path]:
    """Download one dataset and write each of its splits; files that are already there are left alone."""
    check_names([name])
    source = SOURCES[name]
    for split in source.splits:
        path = root / f"{name}-{split}.npz"
        if path.exists():
            report(f"{path}: already there")
            continue
        (root / "raw").mkdir(parents=True, exist_ok=True)
        try:
            samples = source.open(root / "raw", split)
        except (URLError, OSError, RuntimeError) as error:
            cause = getattr(error, "reason", error)  # of a URLError: what came before it, or words
            why = reason(cause) if isinstance(cause, BaseException) else cause
            raise DataError(
                f"{name} could not be downloaded ({why}): expected a connection to the internet. Check it and "
                f"try again, or copy {path.name} into {root} from another machine."
            ) from error
        x, y = as_arrays(samples, large=source.large)
        write_npz(path, {"x": x, "y": y})
        yield path


def as_arrays(samples: Any, *, large: bool = False) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images and classes of a torchvision dataset: x (N, H, W, 3), y (N,). Grey becomes RGB."""
    indices = np.arange(len(samples))
    square: Callable[[NDArray[np.uint8]], NDArray[np.uint8]] = lambda pixels: pixels  # noqa: E731
    if large:
        square = Preprocessing(PHOTO_SIDE)
        indices = np.sort(np.random.default_rng(0).permutation(indices)[:MOST_PHOTOS])
    images, classes = [], []
    for i in indices:
        image, label = samples[int(i)]
        images.append(square(np.asarray(image.convert("RGB"))))
        classes.append(int(label))
    return np.stack(images), np.array(classes, np.int64)


def count(path: Path) -> int | None:
    """How many points a stored dataset has, without reading its images; None when it cannot be read."""
    try:
        declared_shape(path, "x")  # it must be there
        return declared_shape(path, "y")[0]
    except DAMAGE:
        return None


@dataclass(frozen=True)
class SetHere:
    """A dataset that is there, or one that could be fetched."""

    name: str
    state: str  # ready, damaged or missing
    points: int | None
    path: Path | None
    bundled: bool = False


def list_sets(root: Path) -> list[SetHere]:
    """All that `idecode data check` says: the datasets that come with the project and those of a data root, then what is missing."""
    bundled = {path.stem: path for path in EMBEDDED.glob("*.npz") if path.stem != GALLERY}
    paths = {**bundled, **{path.stem: path for path in root.glob("*.npz")}}
    here = []
    for name, path in sorted(paths.items()):
        points = count(path)
        here.append(
            SetHere(name, "damaged" if points is None else "ready", points, path, path.parent == EMBEDDED)
        )
    wanted = (f"{source.name}-{split}" for source in SOURCES.values() for split in source.splits)
    return [*here, *(SetHere(name, "missing", None, None) for name in wanted if name not in paths)]
