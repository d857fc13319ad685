"""What the model sees of a picture: the middle square at the model's size."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from idecode_core.errors import SettingError
from idecode_core.image.read import Pixels

SMALLEST, LARGEST = 8, 1024


@dataclass(frozen=True)
class Preprocessing:
    """From decoded pixels to the model's size: part of the detector, the same for calibration, test and upload.

    The middle square is cut out, then resized with antialiasing. `grey` drops the colour.
    """

    size: int
    grey: bool = False

    def __post_init__(self) -> None:
        if type(self.size) is not int or not SMALLEST <= self.size <= LARGEST:
            raise SettingError(
                f"The model's size must be a whole number of pixels from {SMALLEST} to {LARGEST}, got {self.size!r:.40}. "
                "Correct the settings."
            )

    def __call__(self, pixels: Pixels) -> Pixels:
        """uint8 (h, w, 3) -> uint8 (size, size, 3)."""
        h, w = pixels.shape[:2]
        if (h, w) != (self.size, self.size):
            side = min(h, w)
            top, left = (h - side) // 2, (w - side) // 2
            square = Image.fromarray(np.ascontiguousarray(pixels[top : top + side, left : left + side]))
            pixels = np.asarray(square.resize((self.size, self.size), Image.Resampling.BICUBIC))
        if self.grey:
            grey = np.asarray(Image.fromarray(np.ascontiguousarray(pixels)).convert("L"))
            pixels = np.repeat(grey[..., None], 3, axis=2)
        return pixels

    def resize(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """A whole stack (batch, h, w, 3) -> (batch, size, size, 3)."""
        if images.shape[1:3] == (self.size, self.size) and not self.grey:
            return images
        return np.stack([self(image) for image in images])
