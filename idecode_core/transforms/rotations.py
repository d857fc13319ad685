"""RS: four ranges of rotations, G of the paper's state-of-the-art comparison.

An angle is an integer of [-10, 10], [80, 100], [170, 190] or [260, 280] degrees; the model is asked which
of the four ranges it came from.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from idecode_core.draws import Keys, integers, uniforms
from idecode_core.transforms.base import Interpolation, most_likely, rotation_matrices, warp

RANGES = 4
QUARTER_TURN = 90


@dataclass(frozen=True)
class Rotations:
    """Counter-clockwise rotations about the centre by `90 * range + jitter` degrees.

    per_draw="one" is Algorithm 1: each draw takes one angle from one random range. per_draw="all" is what
    the released code does: each draw takes one angle from every range and averages the four scores.
    """

    title: ClassVar[str] = "rotations"
    means: ClassVar[str] = "turned by about 0, 90, 180 or 270 degrees"

    per_draw: Literal["one", "all"] = "one"
    jitter: int = 10
    interpolation: ClassVar[Interpolation] = "bilinear"

    @property
    def variants(self) -> int:
        return RANGES if self.per_draw == "all" else 1

    def sample(self, keys: Keys, n: int) -> Tensor:
        """Angles in degrees: (batch, n * variants), int64."""
        u = uniforms(keys, n, 2 * self.variants)  # (batch, n, 2 * variants)
        jitter = integers(u[..., : self.variants], -self.jitter, self.jitter)
        if self.per_draw == "all":
            ranges = np.broadcast_to(np.arange(RANGES), jitter.shape)
        else:
            ranges = integers(u[..., 1:], 0, RANGES - 1)
        angles = QUARTER_TURN * ranges + jitter  # (batch, n, variants)
        return torch.from_numpy(angles.reshape(len(keys), n * self.variants))

    def apply(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, c, h, w), angles (batch, m) -> (batch, m, c, h, w)."""
        return warp(x, rotation_matrices(parameters.to("cpu"), *x.shape[-2:]), self.interpolation)

    def target(self, parameters: Tensor) -> Tensor:
        """The range that each angle lies in: (batch, m), int64 in {0, 1, 2, 3}."""
        return torch.div(parameters + QUARTER_TURN // 2, QUARTER_TURN, rounding_mode="floor") % RANGES

    def all_angles(self) -> Tensor:
        """Every angle that can be drawn, rising: (4 * (2 * jitter + 1),)."""
        jitter = torch.arange(-self.jitter, self.jitter + 1)
        return (QUARTER_TURN * torch.arange(RANGES)[:, None] + jitter).flatten()

    def places(self, parameters: Tensor) -> Tensor:
        """Where each drawn angle stands in `all_angles`; same shape as `parameters`."""
        turns = torch.div(parameters + QUARTER_TURN // 2, QUARTER_TURN, rounding_mode="floor")
        return turns * (2 * self.jitter + 1) + (parameters - QUARTER_TURN * turns + self.jitter)

    def describe(self, parameters: Tensor) -> list[str]:
        return [f"rotated by {int(angle)} degrees" for angle in parameters]

    def answers(self, prediction: Tensor) -> list[str]:
        names = [f"turned by about {QUARTER_TURN * i} degrees" for i in range(RANGES)]
        return most_likely(prediction, names)


@dataclass(frozen=True)
class SharpRotations(Rotations):
    """The same rotations, bicubic: they keep the fine detail that bilinear sampling blurs away, which is part of what
    sets other sources of pictures apart (docs/rotations.md)."""

    title: ClassVar[str] = "rotations, bicubic"
    interpolation: ClassVar[Interpolation] = "bicubic"
