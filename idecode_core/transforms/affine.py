"""Small affine warps, flips and windows: transforms under which a classifier's answer should not change (Eq. 3)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from idecode_core.draws import Keys, uniforms
from idecode_core.transforms.base import Interpolation, Invariant, Outside, rotation_matrices, warp


@dataclass(frozen=True)
class SmallAffine(Invariant):
    """Turn within +-degrees, scale within 1 +- scale, shift within +-shift of the side, flip left-right half of the time."""

    title: ClassVar[str] = "small affine"
    means: ClassVar[str] = "turned, scaled, shifted a little, and mirrored half of the time"

    degrees: float = 15.0
    scale: float = 0.15
    shift: float = 0.125
    variants: int = 1
    interpolation: ClassVar[Interpolation] = "bilinear"
    outside: ClassVar[Outside] = "grey"

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
        return warp(x, rotation_matrices(angle, h, w) @ zoom, self.interpolation, self.outside)

    def describe(self, parameters: Tensor) -> list[str]:
        return [
            (f"turned by {angle:.0f} degrees, " if self.degrees else "")
            + f"size {scale:.0%}, moved by ({x:+.0%}, {y:+.0%})"
            + (", mirrored" if flip else "")
            for angle, scale, x, y, flip in zip(
                *parameters.T[:1].tolist(),
                parameters.T[1].exp().tolist(),
                *parameters.T[2:].tolist(),
                strict=True,
            )
        ]


@dataclass(frozen=True)
class Views(SmallAffine):
    """What a class does not depend on, as training shows it: mirrored half of the time, moved by up to two of 32 pixels, a
    little larger or smaller; bicubic, and beyond the border lies the picture's mirror image."""

    title: ClassVar[str] = "views"
    means: ClassVar[str] = "shifted and scaled a little, and mirrored half of the time"

    degrees: float = 0.0
    scale: float = 0.05
    shift: float = 0.0625
    interpolation: ClassVar[Interpolation] = "bicubic"
    outside: ClassVar[Outside] = "mirrored"


@dataclass(frozen=True)
class Windows(SmallAffine):
    """A window that leaves out `shift` of each side's length, anywhere, mirrored half of the time. Its pixels are the picture's
    own: nothing is interpolated, and no border is made up that would be stranger than a small defect."""

    title: ClassVar[str] = "windows"
    means: ClassVar[str] = "cut a little smaller, anywhere, and mirrored half of the time"

    degrees: float = 0.0
    scale: float = 0.0
    shift: float = 0.07  # 16 pixels of 224

    def apply(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, c, h, w), parameters (batch, m, 5) -> (batch, m, c, h - rows left out, w - columns left out)."""
        h, w = x.shape[-2:]
        left_out = torch.tensor([round(w * self.shift), round(h * self.shift)])
        places = (self._places(parameters.cpu()) * left_out).round().long()  # (batch, m, 2): left, top
        rows, columns = h - int(left_out[1]), w - int(left_out[0])
        cut = [
            torch.stack([picture[:, top : top + rows, left : left + columns] for left, top in corners])
            for picture, corners in zip(x, places.tolist(), strict=True)
        ]
        windows = torch.stack(cut)
        mirrored = parameters[..., 4, None, None, None].to(x.device) > 0
        return torch.where(mirrored, windows.flip(-1), windows)

    def _places(self, parameters: Tensor) -> Tensor:
        """Where the window lies between left and right, top and bottom: (..., 2) in [0, 1]."""
        return (parameters[..., 2:4] / max(self.shift, 1e-9) + 1) / 2

    def describe(self, parameters: Tensor) -> list[str]:
        return [
            f"window {x:.0%} from the left, {y:.0%} from the top" + (", mirrored" if flip else "")
            for (x, y), flip in zip(self._places(parameters).tolist(), parameters[:, 4].tolist(), strict=True)
        ]


@dataclass(frozen=True)
class Nudges(Windows):
    """Windows that leave out so little that every part of the picture stays where it was, never mirrored."""

    title: ClassVar[str] = "nudges"
    means: ClassVar[str] = "cut smaller by a few pixels, anywhere"

    shift: float = 0.02  # 4 pixels of 224

    def sample(self, keys: Keys, n: int) -> Tensor:
        return super().sample(keys, n) * torch.tensor([1, 1, 1, 1, 0])
