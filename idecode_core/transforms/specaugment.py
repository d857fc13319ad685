"""Time and frequency masks (SpecAugment, Park et al. 2019): G of the paper's audio experiments.

Masks hide stretches of frames and of mel bands of a block. A hidden cell is 0, the mean of standardised
features. A clip has as many blocks as it is long, and each block has masks of its own.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from idecode_core.draws import Keys, uniforms
from idecode_core.transforms.base import Invariant

FRAMES, BANDS = 128, 64


@dataclass(frozen=True)
class SpecAugment(Invariant):
    """`time_masks` masks of U{0..time_width - 1} frames and `frequency_masks` of U{0..frequency_width - 1} bands.

    The defaults are the usual setting (about 28 % hidden); `PAPER_MASKS` is the paper's (about 82 %).
    """

    title: ClassVar[str] = "time and frequency masks"
    means: ClassVar[str] = "some stretches of time and some bands of frequency are hidden"

    time_width: int = 8
    frequency_width: int = 8
    time_masks: int = 8
    frequency_masks: int = 2
    frames: int = FRAMES
    bands: int = BANDS
    variants: int = 1

    @property
    def masks(self) -> int:
        return self.time_masks + self.frequency_masks

    def sample(self, keys: Keys, n: int, blocks: int = 1) -> Tensor:
        """(first, width) of each mask, time masks first: (batch, n, blocks, masks, 2), int64."""
        u = uniforms(keys, n, blocks * self.masks * 2).reshape(len(keys), n, blocks, self.masks, 2)
        is_time = np.arange(self.masks) < self.time_masks
        limit = np.where(is_time, self.time_width, self.frequency_width)  # (masks,)
        size = np.where(is_time, self.frames, self.bands)
        width = np.floor(u[..., 0] * limit)
        first = np.floor(u[..., 1] * (size - width))
        return torch.from_numpy(np.stack([first, width], axis=-1).astype(np.int64))

    def keep(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """What is not hidden: frames (..., frames) and bands (..., bands), bool, from parameters (..., masks, 2)."""
        return (
            ~_covered(parameters[..., : self.time_masks, :], self.frames),
            ~_covered(parameters[..., self.time_masks :, :], self.bands),
        )

    def apply(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, blocks, bands, frames), parameters (batch, m, blocks, masks, 2) -> (batch, m, blocks, bands, frames)."""
        frames, bands = self.keep(parameters.to(x.device))
        return x[:, None] * bands[..., :, None] * frames[..., None, :]

    def describe(self, parameters: Tensor) -> list[str]:
        """One point's parameters (m, blocks, masks, 2) in words."""
        texts = []
        for frames, bands in zip(*self.keep(parameters), strict=True):
            hidden = 1 - (bands[..., :, None] & frames[..., None, :]).float().mean()
            texts.append(
                f"hidden: {hidden:.0%} ({(~frames).float().mean():.0%} of the time, {(~bands).float().mean():.0%} of the bands)"
            )
        return texts


PAPER_MASKS = SpecAugment(time_width=10, frequency_width=9, time_masks=32, frequency_masks=9)


def _covered(masks: Tensor, size: int) -> Tensor:
    """Masks (..., masks, 2) of (first, width) -> which of `size` places any of them covers (..., size)."""
    place = torch.arange(size, device=masks.device)
    first, width = masks[..., 0, None], masks[..., 1, None]  # (..., masks, 1)
    return ((place >= first) & (place < first + width)).any(dim=-2)
