"""The masked versions of a sound, for display: a small picture of each spectrogram, hidden parts grey."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.scorer import Variant
from idecode_core.transforms import SpecAugment

HIDDEN = (140, 140, 140)
# Dark blue to yellow with steadily rising lightness (anchors of cividis, made for colour-blind eyes).
ANCHORS = np.array(
    [(0, 34, 78), (53, 69, 108), (102, 105, 112), (148, 142, 119), (200, 183, 103), (254, 232, 56)], float
)
LOW, HIGH = -2.0, 2.5  # standardised values shown as the darkest and the brightest colour


def sound_variants(
    transforms: SpecAugment,
    classes: Sequence[str],
    blocks: Tensor,
    parameters: Tensor,
    shares: Tensor,
    scores: NDArray[np.float64],
) -> tuple[Variant, ...]:
    """One clip's variants: blocks (blocks, bands, frames), parameters (n, blocks, masks, 2), M's softmax outputs
    (n, classes), scores (n,)."""
    frames, bands = transforms.keep(parameters)  # (n, blocks, frames), (n, blocks, bands)
    return tuple(
        Variant(
            spectrogram_picture(blocks, bands[i][..., :, None] & frames[i][..., None, :]),
            applied,
            answer(shares[i], classes),
            float(scores[i]),
            i,
        )
        for i, applied in enumerate(transforms.describe(parameters))
    )


def answer(shares: Tensor, classes: Sequence[str]) -> str:
    """What M said, in words. shares (classes,)."""
    best = int(shares.argmax())
    name = classes[best].replace("_", " ") if classes else f"class {best}"
    return f"{name} ({float(shares[best]):.0%} sure)"


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
