"""What the model sees of a picture: the middle square at the model's size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from idecode_core.errors import SettingError
from idecode_core.image.read import Floats, Pixels

SMALLEST, LARGEST = 8, 1024
GREY = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R 601, as PIL has it for 8-bit pictures


@dataclass(frozen=True)
class Preprocessing:
    """From decoded pixels to the model's size: part of the detector, the same for calibration, test and upload.

    The middle square is cut out, then resized with antialiasing. `grey` drops the colour. Pixels are those of torchvision's
    `resize` and `rgb_to_grayscale`, which call PIL for this as is done here, without an import as long as torch's. Its
    `center_crop` takes another square where an odd number of rows is left over, and no shipped detector saw that one.
    """

    size: int
    grey: bool = False

    def __post_init__(self) -> None:
        if type(self.size) is not int or not SMALLEST <= self.size <= LARGEST:
            raise SettingError(
                f"The model's size must be a whole number of pixels from {SMALLEST} to {LARGEST}, got {self.size!r:.40}. "
                "Correct the settings."
            )

    @overload
    def __call__(self, pixels: Pixels) -> Pixels: ...

    @overload
    def __call__(self, pixels: Floats) -> Floats: ...

    def __call__(self, pixels: Pixels | Floats) -> Pixels | Floats:
        """uint8 (h, w, 3) -> uint8 (size, size, 3); unrounded floats in [0, 1] stay unrounded floats."""
        if pixels.dtype != np.uint8:
            return self._unrounded(pixels.astype(np.float32, copy=False))
        if pixels.shape[:2] != (self.size, self.size):
            pixels = self._resized(middle_square(pixels))
        if self.grey:
            grey = np.asarray(Image.fromarray(np.ascontiguousarray(pixels)).convert("L"))
            pixels = np.repeat(grey[..., None], 3, axis=2)
        return pixels

    def _unrounded(self, floats: Floats) -> Floats:
        """The same steps, channel by channel in floating point: (h, w, 3) -> (size, size, 3)."""
        if floats.shape[:2] != (self.size, self.size):
            square = middle_square(floats)
            floats = np.stack([self._resized(square[..., c]) for c in range(3)], axis=2).clip(0, 1)
        if self.grey:
            floats = np.repeat((floats @ GREY)[..., None], 3, axis=2)
        return floats

    def _resized(self, picture: NDArray[Any]) -> NDArray[Any]:
        image = Image.fromarray(np.ascontiguousarray(picture))
        return np.asarray(image.resize((self.size, self.size), Image.Resampling.BICUBIC))

    def resize(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """A whole stack (batch, h, w, 3) -> (batch, size, size, 3)."""
        if images.shape[1:3] == (self.size, self.size) and not self.grey:
            return images
        return np.stack([self(image) for image in images])


def middle_square(picture: NDArray[Any]) -> NDArray[Any]:
    h, w = picture.shape[:2]
    side = min(h, w)
    top, left = (h - side) // 2, (w - side) // 2
    return picture[top : top + side, left : left + side]


def eight_bits(x: Tensor) -> NDArray[np.uint8]:
    """Floats in [0, 1] on any device (batch, 3, h, w) -> pictures to be shown (batch, h, w, 3)."""
    return (x.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()


def unit_range(pictures: Sequence[Pixels | Floats], device: torch.device) -> Tensor:
    """Pictures at the model's size, 8-bit or unrounded, each (size, size, 3) -> floats in [0, 1] on the device:
    (batch, 3, size, size)."""
    if all(picture.dtype == np.uint8 for picture in pictures):  # a quarter of the bytes travel to the device
        return torch.from_numpy(np.stack(pictures)).to(device).permute(0, 3, 1, 2).float() / 255
    return torch.cat(
        [
            unit_range([picture], device)
            if picture.dtype == np.uint8
            else torch.from_numpy(picture)[None].to(device).permute(0, 3, 1, 2)
            for picture in pictures
        ]
    )
