"""A guarantee for *this* calibration set: with probability 1 - delta over the calibration draw, the false
detection rate of the detector at hand is at most epsilon.

Theorem 1 bounds the rate on average over calibration sets; a single set may be above (`FalseDetectionLaw`).
Bates, Candès, Lei, Romano & Sesia (2023), "Testing for outliers with conformal p-values", Annals of Statistics:
if k uniform order statistics satisfy U_(1) <= b_1, ..., U_(k) <= b_k jointly with probability 1 - delta, then
replacing the p-value i/(k+1) by b_i is valid for all epsilon at once, given the calibration set.
"""

import math
import warnings

import numpy as np
import scipy
from numpy.typing import ArrayLike

from idecode_core.conformal import FloatArray, check_epsilon, check_k, checked_p_values
from idecode_core.errors import NothingFlaggedWarning, SettingError


def corrected_epsilon(k: int, epsilon: float, delta: float) -> float:
    """The epsilon to use so that the rate is at most `epsilon` for a share 1 - delta of all calibration sets.

    J' = max{J : P(Beta(J, k+1-J) <= epsilon) > 1 - delta}, which is max{J : P(Binomial(k, epsilon) < J) < delta}
    (Vovk 2012, "Conditional validity of inductive conformal predictors"). The result is (J'+1)/(k+1):
    p < (J'+1)/(k+1) means p <= J'/(k+1). For one epsilon, chosen before looking at the calibration scores.

    >>> round(corrected_epsilon(k=1000, epsilon=0.05, delta=0.1), 4)
    0.042
    """
    check_k(k)
    _check_delta(delta)
    check_epsilon(epsilon)
    # The smallest j with P(Binomial <= j) >= delta has P(Binomial <= j - 1) < delta, as asked of J'.
    j = int(scipy.stats.binom.ppf(delta, k, epsilon))
    if j == 0:
        warnings.warn(
            f"With k={k} no rule can flag anything and keep the rate below epsilon={epsilon:g} for "
            f"{1 - delta:.0%} of all calibration sets. Use a larger epsilon or more calibration data "
            f"(k of at least {k_needed_for_corrected_epsilon(epsilon, delta)}).",
            NothingFlaggedWarning,
            stacklevel=2,
        )
    return (j + 1) / (k + 1)


def k_needed_for_corrected_epsilon(epsilon: float, delta: float) -> int:
    """The smallest k for which `corrected_epsilon` can flag anything: (1 - epsilon)^k < delta.

    >>> k_needed_for_corrected_epsilon(epsilon=0.05, delta=0.1)
    45
    """
    _check_delta(delta)
    check_epsilon(epsilon)
    k = math.floor(math.log(delta) / math.log1p(-epsilon)) + 1
    while scipy.stats.binom.ppf(delta, k, epsilon) == 0:
        k += 1
    return k


def simes_bounds(k: int, delta: float) -> FloatArray:
    """b_1 ... b_k and b_{k+1} = 1 by the generalised Simes inequality (Sarkar 2008) with m = k // 2, as Bates et al.

    b_{k+1-i} = 1 - delta^{1/m} (i (i-1) ... (i-m+1) / (k (k-1) ... (k-m+1)))^{1/m}. Tight for small epsilon.

    >>> simes_bounds(k=4, delta=0.1).round(3)
    array([0.684, 0.776, 0.871, 1.   , 1.   ])
    """
    check_k(k)
    _check_delta(delta)
    m = max(k // 2, 1)
    # log of i (i-1) ... (i-m+1) as a difference of running sums of logs; the product is 0 for i < m.
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, k + 1)))])  # (k+1,)
    i = np.arange(m, k + 1)
    log_falling = log_factorial[i] - log_factorial[i - m]
    power_mean = np.exp((math.log(delta) + log_falling - log_falling[-1]) / m)
    bounds = np.ones(k + 1)
    bounds[k - i] = 1.0 - power_mean  # b_{k+1-i} has index k-i
    return bounds


def dkw_bounds(k: int, delta: float) -> FloatArray:
    """b_i = min(1, (i-1)/k + sqrt(log(1/delta) / (2k))) and b_{k+1} = 1, for delta <= 1/2.

    The one-sided Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant (1990); Bates et al. use the
    two-sided one, which is a little larger. Simple, but loose for small epsilon.

    >>> dkw_bounds(k=4, delta=0.1).round(3)
    array([0.536, 0.786, 1.   , 1.   , 1.   ])
    """
    check_k(k)
    _check_delta(delta)
    if delta > 0.5:
        raise SettingError(f"delta must be at most 0.5 for the DKW bounds, got {delta}.")
    margin = math.sqrt(math.log(1 / delta) / (2 * k))
    return np.append(np.minimum(np.arange(k) / k + margin, 1.0), 1.0)


def monte_carlo_bounds(
    k: int, delta: float, *, generator: np.random.Generator, repeats: int = 2_000
) -> FloatArray:
    """b_i = min(1, i/k + c sqrt(i (k-i)) / k^{3/2}) and b_{k+1} = 1, with c found by simulation.

    The shape is that of Bates et al.'s asymptotic adjustment. c is the ceil((1-delta)(repeats+1))-th smallest of the
    values needed by `repeats` simulated calibration sets, so the guarantee holds with the simulation's own
    randomness included. Usually the tightest of the three.

    >>> bool(monte_carlo_bounds(200, 0.1, generator=np.random.default_rng(0))[9] < dkw_bounds(200, 0.1)[9])
    True
    """
    check_k(k)
    _check_delta(delta)
    order = math.ceil((1 - delta) * (repeats + 1))
    if order > repeats:
        raise SettingError(
            f"repeats={repeats} are too few for delta={delta:g}. Use at least {math.ceil(1 / delta)}."
        )
    i = np.arange(1, k)  # b_k = 1 needs no bound
    weight = np.sqrt(i * (k - i)) / k**1.5
    needed = np.empty(repeats)
    for repeat in range(repeats):
        # Order statistics of k uniforms as normalised sums of exponentials, which needs no sorting.
        sums = np.cumsum(generator.standard_exponential(k + 1))
        needed[repeat] = np.max((sums[: k - 1] / sums[-1] - i / k) / weight, initial=0.0)
    c = np.partition(needed, order - 1)[order - 1]
    bounds = np.append(np.minimum(i / k + c * weight, 1.0), [1.0, 1.0])
    return np.asarray(np.maximum.accumulate(bounds), dtype=np.float64)


def adjusted_p_values(p_values: ArrayLike, bounds: ArrayLike) -> FloatArray:
    """h(p) = b_{ceil((k+1) p)}: p-values valid given the calibration set, for all epsilon at once.

    With probability 1 - delta over the calibration set, P(h(P) < epsilon | calibration) <= epsilon for every epsilon.

    >>> adjusted_p_values([0.2, 1.0], dkw_bounds(k=4, delta=0.1)).round(3)
    array([0.536, 1.   ])
    """
    b = checked_p_values(bounds)
    steps = checked_p_values(p_values) * b.size
    # A p-value i/(k+1) times k+1 may come back a rounding error above i.
    index = np.ceil(steps - 1e-9 * b.size).astype(np.int64) - 1
    return b[np.clip(index, 0, b.size - 1)]


def _check_delta(delta: float) -> None:
    if not 0.0 < delta < 1.0:
        raise SettingError(f"delta must lie strictly between 0 and 1, got {delta}. A usual choice is 0.1.")
