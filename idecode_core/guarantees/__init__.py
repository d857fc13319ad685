"""Guarantees beyond the paper's: for this calibration set, for many inputs, for a stream, for several detectors.

One idea per file; NumPy and SciPy only; p-values in, p-values, flags or alarms out.
"""

from idecode_core.guarantees.conditional import (
    adjusted_p_values,
    corrected_epsilon,
    dkw_bounds,
    k_needed_for_corrected_epsilon,
    monte_carlo_bounds,
    simes_bounds,
)
from idecode_core.guarantees.groups import smallest_epsilon_by_group
from idecode_core.guarantees.merging import (
    bonferroni,
    fisher_assuming_independence,
    harmonic,
    merged_p_values,
    twice_the_mean,
)
from idecode_core.guarantees.repeated_draws import (
    average_e_values,
    e_values,
    p_values_from_e_values,
    twice_the_median,
)

__all__ = [
    "adjusted_p_values",
    "average_e_values",
    "bonferroni",
    "corrected_epsilon",
    "dkw_bounds",
    "e_values",
    "fisher_assuming_independence",
    "harmonic",
    "k_needed_for_corrected_epsilon",
    "merged_p_values",
    "monte_carlo_bounds",
    "p_values_from_e_values",
    "simes_bounds",
    "smallest_epsilon_by_group",
    "twice_the_mean",
    "twice_the_median",
]
