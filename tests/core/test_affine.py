"""Small affine transforms and windows against PIL, within their limits."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats
from test_transforms import GREY, SIZES, as_tensor, assert_same_as_pil, drawn, levels, picture

from idecode_core.transforms import SmallAffine, Windows


def affine(angle: float = 0, scale: float = 1, x: float = 0, y: float = 0, flip: float = 0) -> torch.Tensor:
    return torch.tensor([[[angle, np.log(scale), x, y, flip]]], dtype=torch.float64)


@pytest.mark.parametrize(("h", "w"), SIZES)
@pytest.mark.parametrize(
    ("angle", "scale", "shift_x", "shift_y", "flip"),
    [(12, 1, 0, 0, 0), (0, 1.15, 0, 0, 0), (0, 0.87, 0.1, -0.12, 0), (-15, 1.1, 0.05, 0.02, 1)],
)
def test_small_affine_warps_equal_pil_affine(h, w, angle, scale, shift_x, shift_y, flip):
    """A point of the picture is turned about the centre, then mirrored, scaled and moved; PIL wants the way back."""
    x = picture(h, w)
    gx = SmallAffine().apply(as_tensor(x[None]), affine(angle, scale, shift_x, shift_y, flip))[0, 0]
    radians, mirror = np.radians(angle), 1 - 2 * flip
    centre = np.array([[1, 0, w / 2], [0, 1, h / 2], [0, 0, 1]])
    # rows count downwards, so a counter-clockwise turn has its minus sign below
    turn = np.array(
        [[np.cos(radians), np.sin(radians), 0], [-np.sin(radians), np.cos(radians), 0], [0, 0, 1]]
    )
    zoom = np.diag([mirror * scale, scale, 1])
    move_x, move_y = mirror * shift_x * w * scale, shift_y * h * scale
    move = np.array([[1, 0, move_x], [0, 1, move_y], [0, 0, 1]])
    forward = centre @ move @ zoom @ turn @ np.linalg.inv(centre)
    back = np.linalg.inv(forward)
    pil = Image.fromarray(x).transform(
        (w, h),
        Image.Transform.AFFINE,
        back[:2].ravel().tolist(),
        Image.Resampling.BILINEAR,
        fillcolor=(GREY,) * 3,
    )
    assert_same_as_pil(levels(gx), pil, back)


def test_a_flip_alone_mirrors_and_a_whole_shift_moves():
    x = picture(32, 32)
    flipped = levels(SmallAffine().apply(as_tensor(x[None]), affine(flip=1))[0, 0])
    np.testing.assert_allclose(flipped, x[:, ::-1], atol=0.02)
    moved = levels(SmallAffine().apply(as_tensor(x[None]), affine(x=2 / 32, y=-3 / 32))[0, 0])
    np.testing.assert_allclose(moved[:29, 2:], x[3:, :30], atol=0.02)  # right by 2, up by 3


def test_small_affine_draws_stay_within_their_limits_and_flip_half_of_the_time():
    """The binomial test of the flips has error level 1e-4."""
    transforms = SmallAffine()
    parameters = drawn(transforms)[:, 0]
    limits = torch.tensor([15, np.log(1.15), 0.125, 0.125])
    largest = parameters[:, :4].abs().amax(dim=0)
    assert (largest <= limits + 1e-6).all()
    assert (largest > 0.99 * limits).all()
    flips = int(parameters[:, 4].sum())
    assert stats.binomtest(flips, len(parameters)).pvalue > 1e-4
    assert (transforms.target(parameters[None]) == 0).all()


def test_windows_hold_the_pictures_own_pixels_everywhere_it_has_room_and_are_mirrored_half_of_the_time():
    x = torch.arange(28 * 42).reshape(1, 1, 28, 42).float() / 2000
    parameters = drawn(Windows())[:, 0][None]  # (1, many, 5)
    seen = Windows().apply(x, parameters)[0, :, 0].numpy()
    assert seen.shape[1:] == (26, 39)  # 7 % of each side are left out
    windows = np.lib.stride_tricks.sliding_window_view(x[0, 0].numpy(), (26, 39)).reshape(-1, 26, 39)
    expected = [*windows, *windows[:, :, ::-1]]
    counts = np.array([(seen == one).all(axis=(1, 2)).sum() for one in expected])
    assert counts.sum() == len(seen)
    assert (counts > 0).all()
    assert Windows().describe(torch.tensor([[0, 0, -0.07, 0, 0], [0, 0, 0.07, 0.07, 1]])) == [
        "window 0% from the left, 50% from the top",
        "window 100% from the left, 100% from the top, mirrored",
    ]
