"""Projective transforms against PIL and the public code's spread."""

import numpy as np
import pytest
import torch
from PIL import Image
from small import content_keys
from test_transforms import GREY, SIZES, as_tensor, assert_same_as_pil, drawn, levels, picture

from idecode_core.transforms import Projective
from idecode_core.transforms.projective import CENTRE, SPREAD


def solve_homography(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The 3x3 matrix between four pairs of points by the null space of the direct linear transform."""
    rows = []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y, -u], [0, 0, 0, x, y, 1, -v * x, -v * y, -v]]
    matrix = np.linalg.svd(np.array(rows))[2][-1].reshape(3, 3)
    return matrix / matrix[2, 2]


@pytest.mark.parametrize(("h", "w"), SIZES)
def test_projective_warps_equal_pil_perspective(h, w):
    x = picture(h, w)
    transforms = Projective()
    parameters = transforms.sample(content_keys([x], 3), 6)
    warped = transforms.apply(as_tensor(x[None]), parameters)[0]  # (6, 3, h, w)
    corners = np.array([[0, 0], [32, 0], [32, 32], [0, 32]], float)
    for coefficients, gx in zip(parameters[0].numpy(), warped, strict=True):
        at_32 = np.append(coefficients, 1).reshape(3, 3)
        images = at_32 @ np.c_[corners, np.ones(4)].T
        images = (images[:2] / images[2]).T
        side = np.array([w / 32, h / 32])  # the same warp at another size: all points scale with the image
        matrix = solve_homography(corners * side, images * side)
        pil = Image.fromarray(x).transform(
            (w, h),
            Image.Transform.PERSPECTIVE,
            matrix.ravel()[:8].tolist(),
            Image.Resampling.BILINEAR,
            fillcolor=(GREY,) * 3,
        )
        assert_same_as_pil(levels(gx), pil, matrix)


def test_projective_coefficients_spread_as_measured_from_the_public_code():
    measured = np.array([0.76, 0.76, 17, 0.76, 0.76, 17, 0.0061, 0.0061])
    spread = drawn(Projective(), 20_000)[:, 0].numpy().std(axis=0)
    np.testing.assert_allclose(spread, measured, rtol=0.05)


def test_corners_move_by_whole_pixels_after_scaling_and_quarter_turns():
    """Read the scale back from each warp: the corners then sit on the pixel grid around the scaled, turned square."""
    corners = np.array([[0, 0], [0, 32], [32, 32], [32, 0]], float)
    seen = []
    for coefficients in drawn(Projective(), 300)[:, 0].numpy():
        inverse = np.linalg.inv(np.append(coefficients, 1).reshape(3, 3))
        where = inverse @ np.c_[corners, np.ones(4)].T
        where = (where[:2] / where[2]).T - 16  # (4, 2): where the corners go, from the centre
        half = np.abs(where)
        # |coordinate| = 16 s + shift with whole shifts, so all eight share one fraction up to sign
        signs = np.sign(where)
        fractions = (where * signs) % 1
        spread = (fractions - fractions.flat[0] + 0.5) % 1 - 0.5
        assert np.abs(spread).max() < 1e-6
        assert half.min() > 16 * 0.8 - 4 - 1e-9
        assert half.max() < 16 * 1.2 + 4 + 1e-9
        assert half.max() - half.min() < 8 + 1e-9
        seen.append(tuple(signs[0]))
    assert len(set(seen)) == 4  # the first corner goes to each of the four places


def test_projective_targets_are_the_normalised_coefficients_and_back():
    parameters = drawn(Projective(), 5)
    target = Projective().target(parameters)
    assert target.dtype == torch.float32
    by_hand = (parameters.numpy() - [0, 0, 16, 0, 0, 16, 0, 0]) / [1, 1, 20, 1, 1, 20, 0.015, 0.015]
    np.testing.assert_allclose(target.numpy(), by_hand, rtol=1e-6)
    np.testing.assert_allclose(Projective().parameters(target).numpy(), parameters.numpy(), atol=1e-5)
    assert CENTRE.shape == SPREAD.shape == (8,)


def test_a_projective_warp_is_described_by_its_turn_and_size():
    """A pure quarter turn at 110 %: counter-clockwise, as the eye sees it."""
    shrink = np.diag([1 / 1.1, 1 / 1.1, 1])
    centre = np.array([[1, 0, 16], [0, 1, 16], [0, 0, 1.0]])
    turn = np.array(
        [[0, -1, 0], [1, 0, 0], [0, 0, 1.0]]
    )  # output to input of a counter-clockwise quarter turn
    matrix = centre @ shrink @ turn @ np.linalg.inv(centre)
    assert Projective().describe(torch.from_numpy(matrix.ravel()[:8])[None]) == [
        "projective warp: turned by 90 degrees, size 110%"
    ]
    x = picture(32, 32)
    gx = levels(
        Projective().apply(as_tensor(x[None]), torch.from_numpy(matrix.ravel()[:8])[None, None])[0, 0]
    )
    rotated = Image.fromarray(x).rotate(90)
    pil = rotated.transform(
        (32, 32), Image.Transform.AFFINE, (centre @ shrink @ np.linalg.inv(centre))[:2].ravel().tolist(), 2
    )
    assert np.abs(gx - np.asarray(pil)).max() <= 1.01
