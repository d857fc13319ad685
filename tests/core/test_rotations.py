"""Rotations against PIL and the paper's four ranges."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats
from test_transforms import GREY, SIZES, as_tensor, assert_same_as_pil, drawn, levels, picture, source_points

from idecode_core.transforms import Rotations, SharpRotations


@pytest.mark.parametrize(("h", "w"), SIZES)
@pytest.mark.parametrize("angle", [-10, 3, 80, 97, 170, 181, 269, 280])
def test_rotations_equal_pil_rotate(h, w, angle):
    x = picture(h, w)
    ours = levels(Rotations().apply(as_tensor(x[None]), torch.tensor([[angle]]))[0, 0])
    pil = Image.fromarray(x).rotate(angle, Image.Resampling.BILINEAR, fillcolor=(GREY,) * 3)
    assert_same_as_pil(ours, pil, turn_about_the_centre(angle, h, w))


def turn_about_the_centre(angle: float, h: int, w: int) -> np.ndarray:
    """Output-to-input matrix of a counter-clockwise rotation: there, turn, and back."""
    radians = np.radians(angle)
    to_centre = np.array([[1, 0, -w / 2], [0, 1, -h / 2], [0, 0, 1]])
    turn = np.array(
        [[np.cos(radians), -np.sin(radians), 0], [np.sin(radians), np.cos(radians), 0], [0, 0, 1]]
    )
    return np.linalg.inv(to_centre) @ turn @ to_centre


def cubic_weight(distance: float, a: float = -0.75) -> float:
    """Keys' cubic convolution kernel."""
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0


@pytest.mark.parametrize(("h", "w"), SIZES)
@pytest.mark.parametrize("angle", [-7, 84, 190, 271])
def test_sharp_rotations_weigh_sixteen_neighbours_by_the_cubic_kernel(h, w, angle):
    noise = np.random.default_rng(1).integers(0, 256, (h, w, 3)).astype(np.uint8)
    ours = levels(SharpRotations().apply(as_tensor(noise[None]), torch.tensor([[angle]]))[0, 0])
    x, y = source_points(turn_about_the_centre(angle, h, w), h, w)
    for i, j in np.random.default_rng(2).integers(0, (h, w), (60, 2)):
        left, top = int(np.floor(x[i, j] - 0.5)) - 1, int(np.floor(y[i, j] - 0.5)) - 1
        expected = np.zeros(3)
        for row in range(top, top + 4):
            for column in range(left, left + 4):
                inside = 0 <= row < h and 0 <= column < w
                pixel = noise[row, column] if inside else np.full(3, 127.5)
                expected += cubic_weight(x[i, j] - column - 0.5) * cubic_weight(y[i, j] - row - 0.5) * pixel
        np.testing.assert_allclose(ours[i, j], expected.clip(0, 255), atol=0.05)


def test_sharp_rotations_keep_more_of_the_fine_detail():
    """The spread of noise after a turn by 5 degrees: bilinear sampling averages much of it away."""
    noise = as_tensor(np.random.default_rng(3).integers(0, 256, (8, 32, 32, 3)).astype(np.uint8))
    angles = torch.full((8, 1), 5)
    sharp, soft = (
        kind.apply(noise, angles)[..., 8:24, 8:24].std() for kind in (SharpRotations(), Rotations())
    )
    assert 1.2 * soft < sharp < noise.std()


def test_angles_come_from_the_four_ranges_of_the_paper_and_all_are_equally_likely():
    """Chi-square over the 84 angles at error level 1e-4."""
    angles = drawn(Rotations(), 8400).flatten().numpy()
    allowed = [base + jitter for base in (0, 90, 180, 270) for jitter in range(-10, 11)]
    counts = [int((angles == angle).sum()) for angle in allowed]
    assert sum(counts) == angles.size
    assert stats.chisquare(counts).pvalue > 1e-4


def test_the_target_of_an_angle_is_its_range():
    angles = torch.arange(-10, 281)
    angles = angles[((angles + 10) % 90) <= 20]
    ranges = [0] * 21 + [1] * 21 + [2] * 21 + [3] * 21
    assert Rotations().target(angles[None])[0].tolist() == ranges


def test_per_draw_all_takes_one_angle_of_every_range():
    transforms = Rotations(per_draw="all")
    angles = drawn(transforms, 200, n=3)
    assert angles.shape == (200, 12)
    assert (transforms.target(angles).reshape(200, 3, 4) == torch.arange(4)).all()
    jitter = angles.reshape(-1, 4) - 90 * torch.arange(4)
    assert jitter.abs().max() == 10
    assert not torch.equal(jitter[:, 0], jitter[:, 1])  # each range has its own angle


def test_rotation_is_described_by_its_angle():
    assert Rotations().describe(torch.tensor([87, -3])) == ["rotated by 87 degrees", "rotated by -3 degrees"]
