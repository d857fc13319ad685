"""Conformal p-values (Eq. 5): ranks among calibration scores, and the threshold that they amount to.

Conventions: a larger score is stranger, a smaller p-value is stranger, and OOD means p < epsilon, strictly.
Arrays in, arrays out: no model, no file, no global seed.
"""

import math
import warnings
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idecode_core.errors import NothingFlaggedWarning, ScoreError, SettingError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
LOOKED_UP_TOGETHER = 2**16  # test scores: a block that is sorted and looked up stays in the processor's cache


def checked_scores(scores: ArrayLike, name: str, ndim: int = 1) -> FloatArray:
    """`scores` as float64 with `ndim` axes; a ScoreError when they are empty, not finite or of another shape."""
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ScoreError(f"{name} must be numbers, but could not be read as such ({error}).") from error
    if array.ndim != ndim:
        shape = "(count,)" if ndim == 1 else "(count, n)"
        raise ScoreError(f"{name} must have shape {shape}, got {array.shape}. Reshape them first.")
    if array.size == 0:
        raise ScoreError(f"{name} are empty (shape {array.shape}). Give at least one score.")
    bad = int(np.count_nonzero(~np.isfinite(array)))
    if bad:
        raise ScoreError(
            f"{name} must be finite, but {bad} of {array.size} are NaN or infinite. "
            "Look for inputs or weights that are not finite."
        )
    return array


def checked_p_values(p_values: ArrayLike, ndim: int = 1) -> FloatArray:
    """`p_values` as float64; a ScoreError unless they lie in (0, 1], as conformal p-values do."""
    array = checked_scores(p_values, "p_values", ndim)
    if array.min() <= 0.0 or array.max() > 1.0:
        raise ScoreError(
            f"p_values must lie above 0 and be at most 1, got {array.min():g} to {array.max():g}. "
            "Did scores come in their place?"
        )
    return array


def ranks(calibration_scores: ArrayLike, test_scores: ArrayLike) -> IntArray:
    """#{j : calibration score j >= test score}, for each test score; exact with ties.

    >>> ranks([1.0, 2.0, 2.0, 3.0], [2.0, 9.0])
    array([3, 0])
    """
    calibration = np.sort(checked_scores(calibration_scores, "calibration_scores"))  # (k,)
    return ranks_in(calibration, checked_scores(test_scores, "test_scores"))


def ranks_in(in_order: FloatArray, test: FloatArray) -> IntArray:
    """`ranks` among calibration scores that are in rising order already; both are known to be finite."""
    counts = np.empty(test.size, dtype=np.int64)
    for start in range(0, test.size, LOOKED_UP_TOGETHER):
        block = test[start : start + LOOKED_UP_TOGETHER]
        order = np.argsort(block)  # looked up in rising order, binary search stays in the processor's cache
        places = np.searchsorted(in_order, block[order], side="left")
        counts[start : start + LOOKED_UP_TOGETHER][order] = in_order.size - places
    return counts


def p_values(calibration_scores: ArrayLike, test_scores: ArrayLike) -> FloatArray:
    """Eq. 5: P = (#{j : F(V(x_j)) >= F(V(x))} + 1) / (k + 1), for each test score.

    If the test point is exchangeable with the k calibration points, P(P < epsilon) <= epsilon (Theorem 1).

    >>> p_values([1.0, 2.0, 2.0, 3.0], [2.0, 9.0])
    array([0.8, 0.2])
    """
    k = checked_scores(calibration_scores, "calibration_scores").size
    return (ranks(calibration_scores, test_scores) + 1) / (k + 1)


def smoothed_p_values(
    calibration_scores: ArrayLike, test_scores: ArrayLike, *, generator: np.random.Generator
) -> FloatArray:
    """P = (#{j : s_j > s} + U (#{j : s_j = s} + 1)) / (k + 1) with U uniform on (0, 1], one U per test point.

    Exactly uniform under exchangeability, ties or not (Vovk, Gammerman & Shafer 2005, Prop. 2.4).

    >>> smoothed_p_values([1.0, 2.0], [9.0], generator=np.random.default_rng(0)) <= 1 / 3
    array([ True])
    """
    calibration = np.sort(checked_scores(calibration_scores, "calibration_scores"))  # (k,)
    test = checked_scores(test_scores, "test_scores")  # (batch,)
    k = calibration.size
    at_most = np.searchsorted(calibration, test, side="right")
    below = np.searchsorted(calibration, test, side="left")
    # 1 - random() lies in (0, 1]: a p-value of exactly 0 would make every martingale infinite.
    u = 1.0 - generator.random(test.size)
    smoothed: FloatArray = ((k - at_most) + u * (at_most - below + 1)) / (k + 1)
    return smoothed


def check_epsilon(epsilon: float, k: int | None = None) -> None:
    """SettingError unless 0 < epsilon < 1; with k given, a warning when no point can ever be flagged."""
    if not 0.0 < epsilon < 1.0:
        raise SettingError(
            f"epsilon must lie strictly between 0 and 1, got {epsilon}. A usual choice is 0.05."
        )
    if k is not None and flagging_rank(k, epsilon) == 0:
        warnings.warn(
            f"epsilon={epsilon:g} can never flag anything with k={k}: the smallest p-value is "
            f"1/{k + 1} ≈ {1 / (k + 1):.2g}. Use a larger epsilon or more calibration data "
            f"(k of at least {k_needed(epsilon)}).",
            NothingFlaggedWarning,
            stacklevel=2,
        )


def flagging_rank(k: int, epsilon: float) -> int:
    """J = ceil(epsilon (k+1)) - 1: a point is flagged exactly when it lies above the J-th largest calibration score.

    J is the largest j with j / (k+1) < epsilon *in floating point*, so that it agrees with `p_values < epsilon`
    where the product epsilon (k+1) would round across an integer.

    >>> flagging_rank(k=99, epsilon=0.05)
    4
    """
    check_k(k)
    check_epsilon(epsilon)
    j = max(math.ceil(epsilon * (k + 1)) - 1, 0)
    while (j + 1) / (k + 1) < epsilon:
        j += 1
    while j > 0 and j / (k + 1) >= epsilon:
        j -= 1
    return j


def threshold(calibration_scores: ArrayLike, epsilon: float) -> float:
    """The score above which (strictly) a point is flagged: the J-th largest calibration score; +inf if J = 0.

    >>> threshold(range(1, 100), epsilon=0.05)
    96.0
    """
    calibration = checked_scores(calibration_scores, "calibration_scores")
    j = flagging_rank(calibration.size, epsilon)
    if j == 0:
        return math.inf
    return float(np.partition(calibration, calibration.size - j)[calibration.size - j])


def smallest_epsilon(k: int) -> float:
    """The smallest epsilon that can flag anything with k calibration points: the next number above 1/(k+1).

    >>> round(smallest_epsilon(75), 6)
    0.013158
    """
    check_k(k)
    return math.nextafter(1 / (k + 1), 1.0)


def k_needed(epsilon: float) -> int:
    """The smallest k with 1/(k+1) < epsilon, so that something can be flagged.

    >>> k_needed(0.01), k_needed(0.05)
    (100, 20)
    """
    check_epsilon(epsilon)
    # 1/(k+1) is below epsilon in floating point when it rounds to the next smaller number or less, that is when it
    # lies below the midpoint of the two.
    midpoint = (Fraction(epsilon) + Fraction(math.nextafter(epsilon, 0.0))) / 2
    k = max(math.ceil(1 / midpoint) - 1, 1)
    if 1 / (k + 1) >= epsilon:  # exactly on the midpoint, and rounded up
        k += 1
    return k


def check_k(k: int) -> None:
    """SettingError unless there is at least one calibration point."""
    if k < 1:
        raise SettingError(f"k, the number of calibration points, must be at least 1, got {k}.")
