"""Fetching through torchvision: sizes, samples, broken downloads."""

import struct
import urllib.request
from urllib.error import URLError

import numpy as np
import pytest
from PIL import Image
from small import random_images

from idecode_core.errors import DataError, SettingError
from idecode_core.image import fetch as fetching
from idecode_core.image.fetch import SOURCES, Origin, as_arrays, count, fetch
from idecode_core.image.sets import load_images


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

    monkeypatch.setitem(SOURCES, "own", Origin("own", ("train", "test"), open_split))
    with pytest.raises(DataError, match="connection reset"):
        list(fetch("own", tmp_path))
    assert [path.name for path in tmp_path.glob("*.npz")] == ["own-train.npz"]


def test_an_unknown_name_lists_what_can_be_fetched(tmp_path):
    with pytest.raises(
        SettingError, match=r"'imagenet' can be fetched: expected one of cifar10, cifar100, svhn, fashion"
    ):
        list(fetch("imagenet", tmp_path))
