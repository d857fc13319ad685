"""What all scorers of pictures share: pictures are decoded, keyed by their content and brought to the model's size in one way."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from idecode_core.draws import Prepared, content_key
from idecode_core.image.features import Preprocessing, unit_range
from idecode_core.image.read import Pixels, decode


class TakesPictures:
    """For a scorer with these fields: the methods of `Scorer` that are about its input."""

    modality: ClassVar[str] = "image"
    preprocessing: Preprocessing
    device: torch.device

    def decode(self, samples: Any) -> Iterator[Any]:
        return decode(samples)

    def prepare(self, decoded: Pixels, seed: int) -> Prepared:
        return Prepared(content_key(decoded, seed), seed, self.preprocessing(decoded))

    def tensor(self, points: Sequence[Prepared]) -> Tensor:
        """Prepared samples -> floats in [0, 1] on the device: (batch, 3, size, size)."""
        return unit_range([point.x for point in points], self.device)
