"""A log-mel spectrogram as a small picture: time to the right, low frequencies below, hidden parts grey."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

HIDDEN = (140, 140, 140)
# Dark blue to yellow with steadily rising lightness (anchors of cividis, made for colour-blind eyes).
ANCHORS = np.array(
    [(0, 34, 78), (53, 69, 108), (102, 105, 112), (148, 142, 119), (200, 183, 103), (254, 232, 56)], float
)
LOW, HIGH = -2.0, 2.5  # standardised values shown as the darkest and the brightest colour


def spectrogram_picture(blocks: Tensor, keep: Tensor | None = None) -> NDArray[np.uint8]:
    """Blocks (blocks, bands, frames), side by side; `keep` (bool, same shape) tells what is not hidden."""
    values = _side_by_side(blocks)  # (bands, time)
    place = np.clip((values - LOW) / (HIGH - LOW), 0, 1) * (len(ANCHORS) - 1)
    colours = np.stack([np.interp(place, np.arange(len(ANCHORS)), ANCHORS[:, c]) for c in range(3)], axis=-1)
    if keep is not None:
        colours[~_side_by_side(keep)] = HIDDEN
    return np.ascontiguousarray(colours[::-1].round().astype(np.uint8))


def _side_by_side(blocks: Tensor) -> NDArray[Any]:
    return blocks.cpu().permute(1, 0, 2).flatten(1).numpy()
