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
from idecode_core.guarantees.groups import mondrian_p_values, smallest_epsilon_by_group
from idecode_core.guarantees.merging import (
    bonferroni,
    fisher_assuming_independence,
    harmonic,
    harmonic_constant,
    member_p_values,
    merged_p_values,
    sum_of_log_ranks,
    twice_the_mean,
)
from idecode_core.guarantees.multiple import benjamini_hochberg, false_discovery_proportion, storey
from idecode_core.guarantees.repeated_draws import (
    average_e_values,
    e_values,
    p_values_from_e_values,
    twice_the_median,
)
from idecode_core.guarantees.streams import (
    StreamAlarms,
    cusum_alarms,
    log_mixture,
    log_power,
    log_simple_jumper,
    online_p_values,
    ville_alarms,
)

__all__ = [
    "StreamAlarms",
    "adjusted_p_values",
    "average_e_values",
    "benjamini_hochberg",
    "bonferroni",
    "corrected_epsilon",
    "cusum_alarms",
    "dkw_bounds",
    "e_values",
    "false_discovery_proportion",
    "fisher_assuming_independence",
    "harmonic",
    "harmonic_constant",
    "k_needed_for_corrected_epsilon",
    "log_mixture",
    "log_power",
    "log_simple_jumper",
    "member_p_values",
    "merged_p_values",
    "mondrian_p_values",
    "monte_carlo_bounds",
    "online_p_values",
    "p_values_from_e_values",
    "simes_bounds",
    "smallest_epsilon_by_group",
    "storey",
    "sum_of_log_ranks",
    "twice_the_mean",
    "twice_the_median",
    "ville_alarms",
]
