"""Preprocessing: a picture at the size of its network, held against torchvision."""

import numpy as np
import pytest
from PIL import Image
from small import random_images
from test_image_read import COLOUR
from torchvision.transforms import functional

from idecode_core.image.features import Preprocessing


def test_preprocessing_takes_the_middle_square_and_resizes_it():
    wide = np.zeros((20, 60, 3), np.uint8)
    wide[:, 20:40] = COLOUR[:20, :20]
    expected = Image.fromarray(COLOUR[:20, :20]).resize((8, 8), Image.Resampling.BICUBIC)
    assert np.array_equal(Preprocessing(8)(wide), np.asarray(expected))
    assert np.array_equal(
        Preprocessing(8)(wide.transpose(1, 0, 2)), Preprocessing(8)(COLOUR[:20, :20].transpose(1, 0, 2))
    )


@pytest.mark.parametrize(
    ("h", "w"), [(20, 60), (60, 24), (31, 31), (40, 90)]
)  # an even number of rows is left over
@pytest.mark.parametrize("grey", [False, True])
def test_preprocessing_gives_the_pixels_of_torchvision(h, w, grey):
    picture = np.random.default_rng(h).integers(0, 256, (h, w, 3)).astype(np.uint8)
    image = functional.center_crop(Image.fromarray(picture), [min(h, w)] * 2)
    image = functional.resize(image, [16, 16], functional.InterpolationMode.BICUBIC)
    expected = functional.rgb_to_grayscale(image, 3) if grey else image
    assert np.array_equal(Preprocessing(16, grey)(picture), np.asarray(expected))


def test_an_image_of_the_right_size_is_left_as_it_is():
    square = COLOUR[:20]
    assert np.array_equal(Preprocessing(20)(square), square)


def test_grey_preprocessing_drops_the_colour():
    grey = Preprocessing(20, grey=True)(COLOUR[:20])
    luma = COLOUR[:20] @ np.array([0.299, 0.587, 0.114])
    assert np.abs(grey[..., 0] - luma).max() <= 1
    assert (grey == grey[..., :1]).all()


@pytest.mark.parametrize("preprocessing", [Preprocessing(8), Preprocessing(20), Preprocessing(20, grey=True)])
def test_a_whole_stack_is_preprocessed_as_its_images_are(preprocessing):
    stack = random_images(3, 20)
    assert np.array_equal(preprocessing.resize(stack), np.stack([preprocessing(image) for image in stack]))
