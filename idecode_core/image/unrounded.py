"""Pictures as floats that must reach the network as they are: an attack's changes are finer than 8 bits.

    detector.detect(Unrounded(attacked))

Other float pictures are brought to 8 bits when they are read, as files are. A picture whose floats are 8-bit values is read
as that 8-bit picture, so it has the same key, the same draws and the same scores, however it was written down.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import InputError

Floats = NDArray[np.float32]  # (h, w, 3) in [0, 1]


@dataclass(frozen=True, eq=False)
class Unrounded:
    """One picture or several: tensors (N, 3, h, w) as everywhere in torch, arrays (N, h, w, 3), floats in [0, 1]."""

    x: Any

    def pictures(self) -> Iterator[NDArray[np.uint8] | Floats]:
        """One after the other (h, w, 3): floats, or uint8 where that says the same."""
        channels_first = hasattr(self.x, "detach")
        floats = np.asarray(self.x.detach().cpu() if channels_first else self.x)
        if floats.ndim == 3:
            floats = floats[None]
        if channels_first and floats.ndim == 4:
            floats = floats.transpose(0, 2, 3, 1)
        if (
            floats.ndim != 4
            or floats.shape[3] != 3
            or not np.issubdtype(floats.dtype, np.floating)
            or not np.isfinite(floats).all()
            or (floats.size and (floats.min() < 0 or floats.max() > 1))
        ):
            raise InputError(
                "Unrounded pictures must be floats from 0 to 1, a tensor (N, 3, h, w) or an array (N, h, w, 3); got "
                f"{floats.dtype} of shape {np.shape(self.x)}. Scale or transpose them first."
            )
        for picture in floats.astype(np.float32):
            eight_bits = np.round(picture * 255).astype(np.uint8)
            same = np.array_equal(eight_bits.astype(np.float32) / np.float32(255), picture)
            yield eight_bits if same else np.ascontiguousarray(picture)
