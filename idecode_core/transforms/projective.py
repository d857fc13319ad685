"""PT: projective transforms, G of the paper's ablation studies (and of AVT).

A transform scales the image by U[0.8, 1.2], turns it by a multiple of 90 degrees, and shifts each of its
eight corner coordinates by up to 1/8 of the side. The eight coefficients (a, ..., h) of the matrix
[[a, b, c], [d, e, f], [g, h, 1]] map output to input pixels; the model predicts them, normalised.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.draws import Keys, integers, uniforms
from idecode_core.transforms.base import warp

REFERENCE = 32  # px: the size at which the paper states its constants
STEPS = 4  # corner coordinates move by whole pixels in {-4..4} at 32 px
SCALES = (0.8, 1.2)
# Parameters are kept at 32 px whatever the image's size, so these hold for all sizes.
CENTRE = np.array([0, 0, 16, 0, 0, 16, 0, 0], np.float64)
SPREAD = np.array([1, 1, 20, 1, 1, 20, 0.015, 0.015], np.float64)


def homography(source: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """The coefficients (..., 8) that map four source points to four target points, each (..., 4, 2)."""
    x, y = source[..., 0], source[..., 1]
    u, v = target[..., 0], target[..., 1]
    one, zero = np.ones_like(x), np.zeros_like(x)
    rows_u = np.stack([x, y, one, zero, zero, zero, -x * u, -y * u], axis=-1)  # (..., 4, 8)
    rows_v = np.stack([zero, zero, zero, x, y, one, -x * v, -y * v], axis=-1)
    system = np.concatenate([rows_u, rows_v], axis=-2)  # (..., 8, 8)
    values = np.concatenate([u, v], axis=-1)[..., None]  # (..., 8, 1)
    solution: NDArray[np.float64] = np.linalg.solve(system, values)[..., 0]
    return solution


@dataclass(frozen=True)
class Projective:
    """Projective transforms; parameters are the coefficients at the reference size of 32 px."""

    title: ClassVar[str] = "projective"
    means: ClassVar[str] = "seen from another side: scaled, turned by a quarter, and its corners moved"

    variants: int = 1

    def sample(self, keys: Keys, n: int) -> Tensor:
        """Coefficients (a..h) at 32 px: (batch, n, 8), float64."""
        u = uniforms(keys, n, 10)
        scale = SCALES[0] + (SCALES[1] - SCALES[0]) * u[..., 0]  # (batch, n)
        turns = integers(u[..., 1], 0, 3)
        shifts = integers(u[..., 2:], -STEPS, STEPS).reshape(*u.shape[:2], 4, 2).astype(np.float64)
        side = float(REFERENCE)
        corners = np.array([[0, 0], [0, side], [side, side], [side, 0]])
        middle = np.array([side / 2, side / 2])
        scaled = middle + (corners - middle) * scale[..., None, None]  # (batch, n, 4, 2)
        order = (np.arange(4) + turns[..., None]) % 4  # a quarter turn is a cyclic permutation of the corners
        where = np.take_along_axis(scaled, order[..., None], axis=-2) + shifts  # where the corners of x go
        return torch.from_numpy(homography(where, np.broadcast_to(corners, where.shape)))

    def apply(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, c, h, w), coefficients (batch, m, 8) -> (batch, m, c, h, w)."""
        one = torch.ones_like(parameters[..., :1])
        matrices = torch.cat([parameters, one], dim=-1).unflatten(-1, (3, 3))
        h, w = x.shape[-2:]
        to_reference = torch.tensor([REFERENCE / w, REFERENCE / h, 1.0], dtype=torch.float64).diag()
        from_reference = torch.tensor([w / REFERENCE, h / REFERENCE, 1.0], dtype=torch.float64).diag()
        at_size = from_reference @ matrices.to("cpu", torch.float64) @ to_reference
        return warp(x, at_size)

    def target(self, parameters: Tensor) -> Tensor:
        """Normalised coefficients (batch, m, 8), float32: each of the order of one."""
        centre, spread = torch.from_numpy(CENTRE), torch.from_numpy(SPREAD)
        return ((parameters - centre) / spread).to(torch.float32)

    def parameters(self, target: Tensor) -> Tensor:
        """The inverse of `target`: coefficients from normalised ones, to show what a model predicted."""
        return target.to("cpu", torch.float64) * torch.from_numpy(SPREAD) + torch.from_numpy(CENTRE)

    def describe(self, parameters: Tensor) -> list[str]:
        """Turn and size from the linear part at the image's centre, read back from the coefficients."""
        texts = []
        for a, b, c, d, e, f, g, h in parameters.to(torch.float64).tolist():
            x = y = REFERENCE / 2
            z = g * x + h * y + 1
            u, v = (a * x + b * y + c) / z, (d * x + e * y + f) / z
            ux, uy, vx, vy = (a - u * g) / z, (b - u * h) / z, (d - v * g) / z, (e - v * h) / z
            size = abs(ux * vy - uy * vx) ** -0.5  # the matrix maps output to input: invert for what one sees
            turn = np.degrees(np.arctan2(vx - uy, ux + vy)) % 360
            texts.append(f"projective warp: turned by {turn:.0f} degrees, size {size:.0%}")
        return texts

    def answers(self, prediction: Tensor) -> list[str]:
        return self.describe(self.parameters(prediction))
