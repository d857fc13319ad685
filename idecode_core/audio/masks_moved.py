"""Which masks moved the score of a sound: the mean score of draws that hide a cell, less that of draws that show it."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def mask_effects(hidden: NDArray[np.bool_], scores: Floats) -> Floats:
    """hidden (n, bands, frames) and the scores of the n draws -> (bands, frames); NaN where all draws hide it, or none.

    >>> hidden = np.array([[[True, False]], [[False, False]], [[True, False]]])
    >>> mask_effects(hidden, np.array([3.0, 1.0, 5.0]))
    array([[ 3., nan]])
    """
    times = hidden.sum(axis=0)  # how many draws hide each cell
    with_it = np.tensordot(scores, hidden, axes=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = with_it / times - (scores.sum() - with_it) / (len(scores) - times)
    return np.where((times > 0) & (times < len(scores)), effect, np.nan)
