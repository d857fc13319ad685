"""What a set of transforms G with its distribution Q_G can do; and batched projective warps of images, which several share.

Conventions: a 3x3 matrix maps OUTPUT pixels to INPUT pixels (as PIL's PERSPECTIVE does). Coordinates are
in pixels with the origin at the top-left corner of the top-left pixel, so pixel (i, j) has its centre at
(j + 0.5, i + 0.5). Sampling is bilinear, or bicubic where a transform set asks for it; outside of the image lies
mid-grey, or its mirror image where that is asked for.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from idecode_core.draws import Keys


class TransformSet(Protocol):
    """G with Q_G. Sampling is separate from applying: `sample` returns plain tensors, `apply` is deterministic.

    One draw may hold several variants of x (`variants`; 4 when each draw takes all rotation ranges):
    their scores are averaged into the one score of that draw.
    """

    @property
    def variants(self) -> int:
        """Transformed inputs per draw."""
        ...

    def sample(self, keys: Keys, n: int) -> Tensor:
        """(batch, 2) keys -> parameters (batch, n * variants, ...), on the CPU."""
        ...

    def apply(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, ...) and parameters (batch, m, ...) -> gx (batch, m, ...), on x's device."""
        ...

    def target(self, parameters: Tensor) -> Tensor:
        """What a model that predicts g should answer: (batch, m) classes or (batch, m, p) parameters."""
        ...

    def describe(self, parameters: Tensor) -> list[str]:
        """One point's parameters (m, ...) in words, one text per variant."""
        ...

    def answers(self, prediction: Tensor) -> list[str]:
        """What a model that predicts g said of each variant (m, outputs), in words."""
        ...


def most_likely(logits: Tensor, names: Sequence[str]) -> list[str]:
    """The class that M names for each row of logits (m, classes), and how sure it is."""
    shares = logits.softmax(dim=-1)
    return [f"{names[int(row.argmax())]} ({float(row.max()):.0%} sure)" for row in shares]


class Invariant:
    """For a G under which M should answer the same (g' = identity, Eq. 3): there is nothing about g to answer."""

    def target(self, parameters: Tensor) -> Tensor:
        return torch.zeros(parameters.shape[:2], dtype=torch.int64)

    def answers(self, prediction: Tensor) -> list[str]:
        """A class, without the classes' names by its number."""
        return most_likely(prediction, [f"class {i}" for i in range(prediction.shape[-1])])


FILL = 0.5  # mid-grey, for images in [0, 1]
Interpolation = Literal["bilinear", "bicubic"]
Outside = Literal["grey", "mirrored"]


def warp(
    x: Tensor, matrices: Tensor, interpolation: Interpolation = "bilinear", outside: Outside = "grey"
) -> Tensor:
    """Warp each image by its m matrices: x (batch, c, h, w), matrices (batch, m, 3, 3) -> (batch, m, c, h, w)."""
    batch, m = matrices.shape[:2]
    c, h, w = x.shape[1:]
    device = x.device
    matrices = matrices.to(device=device, dtype=torch.float32)
    columns = torch.arange(w, device=device, dtype=torch.float32) + 0.5
    rows = torch.arange(h, device=device, dtype=torch.float32) + 0.5
    matrices = matrices.reshape(batch * m, 3, 3)
    # The homogeneous input point of output pixel (row, column) is M @ (column, row, 1): built from two outer
    # sums, so that no (h * w, 3) matrix product is needed.
    along_columns = matrices[:, :, 0, None] * columns  # (batch * m, 3, w)
    along_rows = matrices[:, :, 1, None] * rows + matrices[:, :, 2, None]  # (batch * m, 3, h)
    points = along_columns[:, :, None, :] + along_rows[:, :, :, None]  # (batch * m, 3, h, w)
    scale = torch.tensor([2.0 / w, 2.0 / h], device=device).view(1, 2, 1, 1)
    grid = points[:, :2] / points[:, 2:] * scale - 1  # grid_sample counts from -1 to 1
    grid = grid.permute(0, 2, 3, 1)  # (batch * m, h, w, 2)
    source = (x - FILL).repeat_interleave(m, dim=0) if m > 1 else x - FILL  # (batch * m, c, h, w)
    padding = "zeros" if outside == "grey" else "reflection"
    out = grid_sample(source, grid, mode=interpolation, padding_mode=padding, align_corners=False) + FILL
    if interpolation == "bicubic":  # its overshoot at edges leaves the range of pixels
        out = out.clamp_(0, 1)
    return out.reshape(batch, m, c, h, w)


def rotation_matrices(degrees: Tensor, h: int, w: int) -> Tensor:
    """Output-to-input matrices of counter-clockwise rotations about the image centre: (..., 3, 3), float64."""
    radians = torch.deg2rad(degrees.to(torch.float64))
    cos, sin = torch.cos(radians), torch.sin(radians)
    zero, one = torch.zeros_like(cos), torch.ones_like(cos)
    cx, cy = w / 2, h / 2
    top = torch.stack([cos, -sin, cx - cos * cx + sin * cy], dim=-1)
    middle = torch.stack([sin, cos, cy - sin * cx - cos * cy], dim=-1)
    return torch.stack([top, middle, torch.stack([zero, zero, one], dim=-1)], dim=-2)
