"""Fixed views of a picture, which self-supervised rivals learn to tell apart: quarter turns, shifts, mirror images.

A set of views is its output-to-input matrices (views, 3, 3), as `transforms.warp` takes them; what comes in from outside of
the picture is its mirror image, as in the code of Golan and El-Yaniv and of Hendrycks et al.: a grey edge would give away the
shift of any picture, known or not.
"""

from itertools import product

import torch
from torch import Tensor

from idecode_core.transforms.warp import rotation_matrices, warp

QUARTER_TURNS = (0, 90, 180, 270)
SHIFT = 0.25
"""Of the side: 8 pixels of 32, as Golan and El-Yaniv (2018) and Hendrycks et al. (2019) have it."""


def seen_in(x: Tensor, views: Tensor) -> Tensor:
    """Pictures (batch, c, h, w) in their views (batch, m, 3, 3): (batch, m, c, h, w)."""
    return warp(x, views, outside="mirrored")


def shift_matrix(right: float, down: float) -> Tensor:
    """The picture moved by so many pixels: (3, 3)."""
    matrix = torch.eye(3, dtype=torch.float64)
    matrix[0, 2], matrix[1, 2] = -right, -down
    return matrix


def mirror_matrix(size: int) -> Tensor:
    """Left and right exchanged: (3, 3)."""
    matrix = torch.diag(torch.tensor([-1.0, 1.0, 1.0], dtype=torch.float64))
    matrix[0, 2] = size
    return matrix


def quarter_turns(size: int) -> Tensor:
    """Gidaris et al. (2018): (4, 3, 3)."""
    return rotation_matrices(torch.tensor(QUARTER_TURNS), size, size)


def turned_and_shifted(size: int) -> Tensor:
    """Hendrycks et al. (2019): shifts to the right and down, each by -1/4, 0 or 1/4 of the side, then a quarter turn:
    (36, 3, 3). The turn changes fastest, then the shift down."""
    far = round(SHIFT * size)
    turns = quarter_turns(size)
    return torch.stack(
        [
            shift_matrix(right * far, down * far) @ turn
            for right, down in product((-1, 0, 1), repeat=2)
            for turn in turns
        ]
    )


def geometric(size: int) -> Tensor:
    """Golan and El-Yaniv (2018): mirrored or not, shifted, turned: (72, 3, 3)."""
    views = turned_and_shifted(size)
    return torch.cat([views, mirror_matrix(size) @ views])


def affine(size: int, count: int = 16) -> Tensor:
    """Bergman and Hoshen (2020) draw random matrices; here they act on the plane of the picture, about its middle, and are
    always the same: (count, 3, 3)."""
    generator = torch.Generator().manual_seed(0)
    middle = shift_matrix(-size / 2, -size / 2)
    matrices = torch.eye(3, dtype=torch.float64).repeat(count, 1, 1)
    matrices[:, :2, :2] = torch.randn(count, 2, 2, generator=generator, dtype=torch.float64)
    lengths = torch.linalg.det(matrices[:, :2, :2]).abs().sqrt()  # as large as before, whatever was drawn
    matrices[:, :2, :2] /= lengths[:, None, None]
    return middle @ matrices @ shift_matrix(size / 2, size / 2)
