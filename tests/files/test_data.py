"""Where datasets lie: an argument, a variable or a folder."""

import numpy as np
from small import random_images
from test_image_sets import write

from idecode_core.data import data_root
from idecode_core.image.sets import load_images


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
