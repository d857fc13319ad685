"""Conformal p-values: arrays in, arrays out. NumPy and SciPy only.

`ranking` has Eq. 5, `calibration` the score vectors of the calibration set and F, `law` how the false detection rate
varies from one calibration set to the next, and `judge` the last lines of Algorithm 1.
"""

from idecode_core.conformal.law import FalseDetectionLaw, exceeding_share, law_bands, observed_band
from idecode_core.conformal.ranking import (
    FloatArray,
    IntArray,
    check_epsilon,
    check_k,
    checked_p_values,
    checked_scores,
    flagging_rank,
    k_needed,
    p_values,
    ranks,
    smallest_epsilon,
    smoothed_p_values,
    threshold,
)

__all__ = [
    "FalseDetectionLaw",
    "FloatArray",
    "IntArray",
    "check_epsilon",
    "check_k",
    "checked_p_values",
    "checked_scores",
    "exceeding_share",
    "flagging_rank",
    "k_needed",
    "law_bands",
    "observed_band",
    "p_values",
    "ranks",
    "smallest_epsilon",
    "smoothed_p_values",
    "threshold",
]
