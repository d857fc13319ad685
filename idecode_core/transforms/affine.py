"""Small affine warps and flips: transforms under which a classifier's answer should not change (Eq. 3)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from idecode_core.draws import Keys, uniforms
from idecode_core.transforms.base import most_likely
from idecode_core.transforms.warp import rotation_matrices, warp


@dataclass(frozen=True)
class SmallAffine:
    """Turn within +-degrees, scale within 1 +- scale, shift within +-shift of the side, flip left-right half of the time."""

    degrees: float = 15.0
    scale: float = 0.15
    shift: float = 0.125
    variants: int = 1

    def sample(self, keys: Keys, n: int) -> Tensor:
        """(angle in degrees, log scale, shift x, shift y as fractions of the side, flip 0/1): (batch, n, 5)."""
        u = torch.from_numpy(uniforms(keys, n, 5))
        centred = 2 * u[..., :4] - 1
        limits = torch.tensor(
            [self.degrees, torch.tensor(1 + self.scale).log().item(), self.shift, self.shift]
        )
        return torch.cat([centred * limits, (u[..., 4:] < 0.5).to(u.dtype)], dim=-1)

    def apply(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, c, h, w), parameters (batch, m, 5) -> (batch, m, c, h, w)."""
        h, w = x.shape[-2:]
        parameters = parameters.to("cpu", torch.float64)
        angle, log_scale, shift_x, shift_y, flip = parameters.unbind(-1)  # each (batch, m)
        zoom = torch.zeros(*angle.shape, 3, 3, dtype=torch.float64)
        inverse = torch.exp(-log_scale)
        mirrored = inverse * (1 - 2 * flip)
        zoom[..., 0, 0], zoom[..., 1, 1], zoom[..., 2, 2] = mirrored, inverse, 1
        zoom[..., 0, 2] = w / 2 - mirrored * (w / 2) - shift_x * w
        zoom[..., 1, 2] = h / 2 - inverse * (h / 2) - shift_y * h
        return warp(x, rotation_matrices(angle, h, w) @ zoom)

    def target(self, parameters: Tensor) -> Tensor:
        """Nothing: under invariance (g' = identity) the answer does not depend on g."""
        return torch.zeros(parameters.shape[:2], dtype=torch.int64)

    def describe(self, parameters: Tensor) -> list[str]:
        return [
            f"turned by {angle:.0f} degrees, size {scale:.0%}, moved by ({x:+.0%}, {y:+.0%})"
            + (", mirrored" if flip else "")
            for angle, scale, x, y, flip in zip(
                *parameters.T[:1].tolist(),
                parameters.T[1].exp().tolist(),
                *parameters.T[2:].tolist(),
                strict=True,
            )
        ]

    def answers(self, prediction: Tensor) -> list[str]:
        """A model under invariance names a class, not g; without the classes' names, by its number."""
        return most_likely(prediction, [f"class {i}" for i in range(prediction.shape[-1])])
