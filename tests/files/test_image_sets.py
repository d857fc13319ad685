"""Datasets by name, the bundled ones, splits, and fetching through torchvision."""

import numpy as np
import pytest
from small import random_images

from idecode_core.data import EMBEDDED
from idecode_core.errors import DataError
from idecode_core.image.fetch import count
from idecode_core.image.sets import ImageSet, load_images

BUNDLED = {  # name: (images, side, classes)
    "fashionmini-train": (10_000, 28, 10),
    "fashion-sample": (1_000, 28, 10),
    "cifar10-sample": (120, 32, 10),
    "digits-sample": (500, 28, 10),
    "photos-sample": (100, 64, 2),
    "textures-sample": (200, 32, 5),
}


@pytest.mark.parametrize(
    ("name", "points", "side", "classes"), [(name, *sizes) for name, sizes in BUNDLED.items()]
)
def test_bundled_sets_load_from_anywhere_without_a_data_root(
    name, points, side, classes, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IDECODE_DATA", raising=False)
    images = load_images(name)
    assert images.x.shape == (points, side, side, 3)
    assert images.x.dtype == np.uint8
    assert sorted(set(images.y.tolist())) == list(range(classes))
    distinct = len({image.tobytes() for image in images.x})
    assert distinct >= 0.99 * points  # Fashion-MNIST holds a few duplicates


def test_bundled_sets_are_small_and_their_licences_lie_beside_them():
    files = list(EMBEDDED.glob("*.npz"))
    gallery = "attacked-gallery"  # of the Attack lab: pictures of cifar10-sample, attacked
    first_look = "numbers-sample"  # of Home: drawn house numbers, in no table
    assert {path.stem for path in files} == {*BUNDLED, gallery, first_look}
    assert sum(path.stat().st_size for path in files if path.stem != gallery) < 7e6
    assert (EMBEDDED / f"{gallery}.npz").stat().st_size < 1e6
    readme = (EMBEDDED / "README.md").read_text()
    assert all(name in readme for name in (*BUNDLED, gallery, first_look))
    for word in ("MIT", "Krizhevsky", "CC BY 4.0", "CC BY 2.0", "Zalando"):
        assert word in readme


def test_the_small_cifar10_set_has_as_many_images_of_each_class():
    assert np.bincount(load_images("cifar10-sample").y).tolist() == [12] * 10


def write(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


def test_grey_images_may_be_stored_without_the_colour_axis(tmp_path):
    write(tmp_path / "grey-test.npz", x=random_images(3)[..., 0], y=np.zeros(3))
    x = load_images("grey-test", tmp_path).x
    assert x.shape == (3, 16, 16, 3)
    assert (x == x[..., :1]).all()


def test_a_missing_dataset_is_told_with_the_command_that_gets_it(tmp_path):
    with pytest.raises(DataError, match=r"svhn-test.*data fetch svhn.*--data-root or IDECODE_DATA"):
        load_images("svhn-test", tmp_path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"x": random_images(2)},
        {"y": np.zeros(2)},
        {"x": random_images(2), "y": np.zeros(3)},
        {"x": random_images(2) / 255, "y": np.zeros(2)},
        {"x": random_images(2)[..., :2], "y": np.zeros(2)},
        {"x": np.zeros(5, np.uint8), "y": np.zeros(5)},
        {"x": np.array([{}, {}]), "y": np.zeros(2)},
    ],
)
def test_an_npz_that_is_no_dataset_is_refused(arrays, tmp_path):
    write(tmp_path / "bad-test.npz", **arrays)
    with pytest.raises(DataError, match=r"bad-test.npz (is not|cannot be read as) a"):
        load_images("bad-test", tmp_path)


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 cut off"])
def test_a_damaged_dataset_is_refused(content, tmp_path):
    (tmp_path / "bad-test.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"cannot be read as a dataset.*Make it again"):
        load_images("bad-test", tmp_path)
    assert count(tmp_path / "bad-test.npz") is None


def test_classes_and_points_are_picked():
    images = ImageSet("own", random_images(6), np.array([0, 1, 2, 0, 1, 2]))
    assert images.only((0, 2)).y.tolist() == [0, 2, 0, 2]
    assert np.array_equal(images.take(np.array([5, 0])).x, images.x[[5, 0]])
