"""Transform sets against PIL, at several sizes; draws against what the paper says of them."""

import numpy as np
import pytest
import torch
from PIL import Image
from small import content_keys

from idecode_core.transforms import Projective, Rotations, SharpRotations, SmallAffine

SIZES = [(32, 32), (28, 28), (48, 64), (65, 33)]  # (h, w): the paper's, ours, non-square, odd
SETS = [Projective(), Rotations(), Rotations(per_draw="all"), SharpRotations(), SmallAffine()]
GREY = 128  # PIL's fill; ours is 127.5


def picture(h: int, w: int, seed: int = 0) -> np.ndarray:
    """A picture with structure everywhere, smooth enough for levels to be compared: uint8 (h, w, 3)."""
    coarse = np.random.default_rng(seed).integers(0, 256, (9, 9, 3)).astype(np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((w, h), Image.Resampling.BICUBIC))


def as_tensor(images: np.ndarray) -> torch.Tensor:
    """uint8 (batch, h, w, 3) -> floats in [0, 255] / 255: (batch, 3, h, w)."""
    return torch.from_numpy(images.copy()).permute(0, 3, 1, 2).float() / 255


def levels(gx: torch.Tensor) -> np.ndarray:
    """(3, h, w) in [0, 1] -> (h, w, 3) in 0..255, not rounded."""
    return gx.permute(1, 2, 0).double().numpy() * 255


def source_points(matrix: np.ndarray, h: int, w: int) -> tuple[np.ndarray, np.ndarray]:
    """Where in the input each output pixel's centre comes from: x and y, each (h, w)."""
    columns, rows = np.meshgrid(np.arange(w) + 0.5, np.arange(h) + 0.5)
    points = matrix @ np.stack([columns.ravel(), rows.ravel(), np.ones(h * w)])
    return (points[0] / points[2]).reshape(h, w), (points[1] / points[2]).reshape(h, w)


def assert_same_as_pil(ours: np.ndarray, pil: Image.Image, matrix: np.ndarray) -> None:
    """Equal within one level (PIL cuts off where we round) where the source lies inside; grey where it lies outside.

    At the border itself the two differ by design: PIL extends the edge by half a pixel, ours fades to grey.
    """
    h, w = ours.shape[:2]
    x, y = source_points(matrix, h, w)
    inside = (x > 1) & (x < w - 1) & (y > 1) & (y < h - 1)
    outside = (x < -1) | (x > w + 1) | (y < -1) | (y > h + 1)
    assert inside.mean() > 0.3
    theirs = np.asarray(pil).astype(np.float64)
    assert np.abs(ours - theirs)[inside].max() <= 1.01
    np.testing.assert_allclose(ours[outside], 127.5, atol=1e-3)
    assert (theirs[outside] == GREY).all()


@pytest.mark.parametrize("transforms", [Rotations(), SharpRotations()])
@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_quarter_turns_are_exact(turns, transforms):
    x = picture(32, 32)
    ours = levels(transforms.apply(as_tensor(x[None]), torch.tensor([[90 * turns]]))[0, 0])
    np.testing.assert_allclose(ours, np.rot90(x, turns), atol=0.02)


@pytest.mark.parametrize("transforms", SETS, ids=repr)
def test_a_warp_depends_on_its_own_image_and_parameters_only(transforms):
    x = np.stack([picture(20, 24, seed) for seed in range(4)])
    parameters = transforms.sample(content_keys(x, 0), 3)
    together = transforms.apply(as_tensor(x), parameters)
    assert together.shape == (4, 3 * transforms.variants, 3, 20, 24)
    for i in range(4):
        alone = transforms.apply(as_tensor(x[i : i + 1]), parameters[i : i + 1])
        assert torch.equal(alone[0], together[i])
        for j in range(parameters.shape[1]):
            single = transforms.apply(as_tensor(x[i : i + 1]), parameters[i : i + 1, j : j + 1])
            assert torch.equal(single[0, 0], together[i, j])


@pytest.mark.parametrize("transforms", SETS, ids=repr)
def test_fewer_draws_are_the_first_ones_and_points_differ(transforms):
    keys = content_keys(np.stack([picture(8, 8, seed) for seed in range(3)]), 0)
    many = transforms.sample(keys, 7)
    few = transforms.sample(keys, 2)
    assert torch.equal(few, many[:, : 2 * transforms.variants])
    assert not torch.equal(many[0], many[1])
    assert not torch.equal(many[0], transforms.sample(content_keys(picture(8, 8)[None], 1), 7)[0])


@pytest.mark.parametrize("transforms", SETS, ids=repr)
def test_no_tensor_is_stuck_on_the_cpu(transforms):
    """On the meta device every operation that mixes devices raises."""
    x = torch.empty(2, 3, 20, 24, device="meta")
    parameters = transforms.sample(content_keys(np.stack([picture(8, 8, s) for s in range(2)]), 0), 3)
    gx = transforms.apply(x, parameters)
    assert gx.device.type == "meta"
    assert gx.shape == (2, 3 * transforms.variants, 3, 20, 24)


@pytest.mark.parametrize("transforms", SETS, ids=repr)
def test_each_drawn_transform_is_described_in_words(transforms):
    parameters = transforms.sample(content_keys([picture(8, 8)], 0), 4)[0]
    texts = transforms.describe(parameters)
    assert len(texts) == 4 * transforms.variants
    assert all("degrees" in text for text in texts)


def drawn(transforms, points=4000, n=1):
    return transforms.sample(content_keys(list(np.arange(points)[:, None]), 0), n)
