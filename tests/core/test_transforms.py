"""Transform sets against PIL, at several sizes; draws against what the paper says of them."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats
from small import content_keys

from idecode_core.transforms import Projective, Rotations, SharpRotations, SmallAffine, Windows
from idecode_core.transforms.projective import CENTRE, SPREAD

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


@pytest.mark.parametrize("transforms", [Rotations(), SharpRotations()])
@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_quarter_turns_are_exact(turns, transforms):
    x = picture(32, 32)
    ours = levels(transforms.apply(as_tensor(x[None]), torch.tensor([[90 * turns]]))[0, 0])
    np.testing.assert_allclose(ours, np.rot90(x, turns), atol=0.02)


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
