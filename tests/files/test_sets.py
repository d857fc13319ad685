"""Datasets by name, the bundled ones, splits, and fetching through torchvision."""

import struct
import urllib.request
from urllib.error import URLError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from small import random_images

from idecode_core.data import EMBEDDED, data_root
from idecode_core.errors import DataError, SettingError
from idecode_core.folder.record import split_indices
from idecode_core.image import fetch as fetching
from idecode_core.image.fetch import SOURCES, Source, as_arrays, count, fetch
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


def test_the_data_root_is_an_argument_else_a_variable_else_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("IDECODE_DATA", str(tmp_path / "variable"))
    assert data_root(tmp_path) == tmp_path
    assert data_root() == tmp_path / "variable"
    monkeypatch.delenv("IDECODE_DATA")
    assert str(data_root()) == "data"
    x, y = random_images(4), np.arange(4)
    write(tmp_path / "own-train.npz", x=x, y=y)
    images = load_images("own-train", tmp_path)
    assert np.array_equal(images.x, x)
    assert np.array_equal(images.y, y)


def test_a_file_in_the_data_root_comes_before_the_bundled_one(tmp_path):
    write(tmp_path / "fashion-sample.npz", x=random_images(2, 28), y=np.zeros(2))
    assert len(load_images("fashion-sample", tmp_path)) == 2


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


@given(st.integers(20, 3000), st.integers(0, 2**31))
def test_a_split_is_a_random_partition_of_the_papers_proportions(size, seed):
    split = split_indices(size, seed=seed)
    together = np.concatenate([split.proper, split.validation, split.calibration])
    assert sorted(together.tolist()) == list(range(size))
    assert len(split.calibration) == round(size / 10)
    assert abs(len(split.validation) - 0.05 * 0.9 * size) <= 1
    again = split_indices(size, seed=seed)
    assert np.array_equal(again.calibration, split.calibration)


@pytest.fixture
def offline(monkeypatch):
    def unreachable(*arguments, **options):
        raise URLError("Name or service not known")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)


@pytest.mark.parametrize("name", SOURCES)
def test_without_internet_fetching_says_so_and_writes_no_dataset(name, offline, tmp_path):
    with pytest.raises(
        DataError, match=r"(could not be downloaded.*connection to the internet|LSUN is only offered)"
    ):
        list(fetch(name, tmp_path))
    assert list(tmp_path.glob("*.npz")) == []


def test_fashion_mnist_is_stored_from_torchvisions_files(offline, tmp_path):
    """The real torchvision class on small files in the original format: nothing needs to be downloaded."""
    raw = tmp_path / "raw" / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    expected = {}
    for split, prefix, points in (("train", "train", 7), ("test", "t10k", 3)):
        x = random_images(points, 28)[..., 0]
        y = np.arange(points, dtype=np.uint8)
        (raw / f"{prefix}-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", 2051, points, 28, 28) + x.tobytes()
        )
        (raw / f"{prefix}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, points) + y.tobytes())
        expected[split] = (x, y)
    said = []
    paths = list(fetch("fashion", tmp_path, report=said.append))
    assert [path.name for path in paths] == ["fashion-train.npz", "fashion-test.npz"]
    for split, (x, y) in expected.items():
        images = load_images(f"fashion-{split}", tmp_path)
        assert np.array_equal(images.x, np.repeat(x[..., None], 3, axis=3))
        assert np.array_equal(images.y, y)
        assert count(tmp_path / f"fashion-{split}.npz") == len(y)
    assert list(fetch("fashion", tmp_path, report=said.append)) == []
    assert [sentence.endswith("already there") for sentence in said] == [True, True]


def test_photographs_of_all_sizes_become_squares_of_64_pixels_and_large_sets_a_sample(monkeypatch):
    photos = [(Image.fromarray(random_images(1, 80 + i)[0][: 70 + i]), i) for i in range(6)]
    x, y = as_arrays(photos, large=True)
    assert x.shape == (6, 64, 64, 3)
    assert y.tolist() == list(range(6))
    middle = photos[0][0].crop((5, 0, 75, 70)).resize((64, 64), Image.Resampling.BICUBIC)
    assert np.array_equal(x[0], np.asarray(middle))
    monkeypatch.setattr(fetching, "MOST_PHOTOS", 4)
    chosen = as_arrays(photos, large=True)[1].tolist()
    assert len(set(chosen)) == 4
    assert as_arrays(photos, large=True)[1].tolist() == chosen


def test_small_images_keep_their_pixels_and_order():
    stack = random_images(5)
    x, y = as_arrays([(Image.fromarray(image), 9 - i) for i, image in enumerate(stack)])
    assert np.array_equal(x, stack)
    assert y.tolist() == [9, 8, 7, 6, 5]


def test_a_download_that_stops_halfway_leaves_the_finished_split_only(tmp_path, monkeypatch):
    def open_split(raw, split):
        if split == "test":
            raise URLError("connection reset")
        return [(Image.fromarray(image), 0) for image in random_images(3)]

    monkeypatch.setitem(SOURCES, "own", Source("own", ("train", "test"), open_split))
    with pytest.raises(DataError, match="connection reset"):
        list(fetch("own", tmp_path))
    assert [path.name for path in tmp_path.glob("*.npz")] == ["own-train.npz"]


def test_an_unknown_name_lists_what_can_be_fetched(tmp_path):
    with pytest.raises(
        SettingError, match=r"'imagenet' can be fetched: expected one of cifar10, cifar100, svhn, fashion"
    ):
        list(fetch("imagenet", tmp_path))
