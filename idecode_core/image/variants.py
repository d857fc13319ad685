"""The transformed versions of a picture, for display: what was applied, what M said, how strange it was."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.image.features import eight_bits
from idecode_core.scorer import Variant
from idecode_core.transforms import TransformSet
from idecode_core.transforms.base import most_likely


def image_variants(
    transforms: TransformSet,
    classes: Sequence[str],
    gx: Tensor,
    parameters: Tensor,
    prediction: Tensor,
    scores: NDArray[np.float64],
) -> tuple[Variant, ...]:
    """One point's variants: gx (m, 3, h, w), parameters (m, ...), prediction (m, outputs), scores (m,)."""
    said = prediction.cpu()
    about_g, about_x = said[:, : said.shape[1] - len(classes)], said[:, said.shape[1] - len(classes) :]
    turned = transforms.answers(about_g) if about_g.shape[1] else []
    named = most_likely(about_x, classes) if classes else []
    answers = (
        [", ".join(both) for both in zip(turned, named, strict=True)] if turned and named else turned or named
    )
    return tuple(
        Variant(image, applied, predicted, float(score), index // transforms.variants)
        for index, (image, applied, predicted, score) in enumerate(
            zip(eight_bits(gx), transforms.describe(parameters), answers, scores, strict=True)
        )
    )
