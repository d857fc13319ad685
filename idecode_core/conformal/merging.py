"""Several detectors or transform sets, one valid p-value.

Two ways. Merge first, calibrate last: any function of the members' outputs is a score, and Eq. 5 on held-out points
makes it a valid p-value whatever the dependence; this loses nothing. Or merge finished p-values by a rule that is
valid under any dependence; this needs no further data but pays a factor.

p-values over repeated draws of one input, combined into one answer that depends less on the luck of the draw.

Repeated p-values of an input depend on each other in an unknown way; both rules are valid under any dependence.
More draws n inside one score vector lose no factor: prefer that when the detector can be run again.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from idecode_core import conformal
from idecode_core.conformal import FloatArray, checked_p_values, checked_scores
from idecode_core.errors import ScoreError, SettingError


def member_p_values(ranking_scores: ArrayLike, scores: ArrayLike) -> FloatArray:
    """Each member's scores (batch, members) as p-values among its own ranking scores (points, members).

    Puts members of different scales on one. Shape (batch, members).

    >>> member_p_values([[1.0, 300.0], [2.0, 100.0], [3.0, 200.0]], [[2.5, 250.0]])
    array([[0.5, 0.5]])
    """
    reference = checked_scores(ranking_scores, "ranking_scores", ndim=2)
    batch = checked_scores(scores, "scores", ndim=2)
    if reference.shape[1] != batch.shape[1]:
        raise ScoreError(
            f"scores must have one column for each of the {reference.shape[1]} members, got shape {batch.shape}."
        )
    columns = [conformal.p_values(r, s) for r, s in zip(reference.T, batch.T, strict=True)]
    return np.stack(columns, axis=1)


def sum_of_log_ranks(member_p: FloatArray) -> FloatArray:
    """F = sum over members of -log p: Fisher's statistic as a *score*, to be calibrated. Larger is stranger.

    >>> sum_of_log_ranks(np.array([[0.5, 0.5]])).round(4)
    array([1.3863])
    """
    total: FloatArray = -np.log(checked_p_values(member_p, ndim=2)).sum(axis=1)
    return total


def merged_p_values(
    ranking_scores: ArrayLike,
    calibration_scores: ArrayLike,
    test_scores: ArrayLike,
    merge: Callable[[FloatArray], FloatArray] = sum_of_log_ranks,
) -> FloatArray:
    """One p-value per test point from several members: rank each member, merge by any F, calibrate the merged score.

    The scores are (points, members). Ranking points and calibration points must be different points: a calibration
    point that helped to rank itself is no longer exchangeable with a test point. `merge` maps member p-values
    (batch, members) to a score (batch,), larger = stranger. Valid under any dependence between members.

    >>> generator = np.random.default_rng(0)
    >>> ranking, calibration = generator.normal(size=(2, 100, 2))
    >>> bool(merged_p_values(ranking, calibration, [[5.0, 5.0]])[0] < 0.05)
    True
    """
    calibration = merge(member_p_values(ranking_scores, calibration_scores))  # (k,)
    test = merge(member_p_values(ranking_scores, test_scores))  # (batch,)
    return conformal.p_values(calibration, test)


def bonferroni(p_values: ArrayLike) -> FloatArray:
    """min(1, m min p) over the last axis of (batch, m). Best when one member alone sees the strangeness.

    >>> bonferroni([[0.01, 0.5]])
    array([0.02])
    """
    p = checked_p_values(p_values, ndim=2)
    return np.asarray(np.minimum(p.shape[1] * p.min(axis=1), 1.0), dtype=np.float64)


def twice_the_mean(p_values: ArrayLike) -> FloatArray:
    """min(1, 2 mean p) over the last axis of (batch, m). Rüschendorf (1982); the factor 2 cannot be improved.

    Best when members agree strongly.

    >>> twice_the_mean([[0.01, 0.03]])
    array([0.04])
    """
    p = checked_p_values(p_values, ndim=2)
    return np.asarray(np.minimum(2 * p.mean(axis=1), 1.0), dtype=np.float64)


def harmonic_constant(m: int) -> float:
    """a_m, the smallest constant that makes a_m x (harmonic mean of m p-values) valid under any dependence.

    a_1 = 1, a_2 = 2, and for m >= 3 a_m = (y + m)^2 / ((y + 1) m) where y > 0 solves
    y^2 = m ((y + 1) log(y + 1) - y). Vovk & Wang (2020), "Combining p-values via averaging".
    It grows like log m.

    >>> round(harmonic_constant(3), 3)
    2.746
    """
    if m <= 2:
        return float(m)

    def balance(y: float) -> float:
        return y**2 - m * ((y + 1) * math.log1p(y) - y)

    # balance is negative just above 0 and positive for large y; both ends are far from the root for every m >= 3.
    y = optimize.brentq(balance, 1e-3, 100.0 * m * math.log(m))
    return float((y + m) ** 2 / ((y + 1) * m))


def harmonic(p_values: ArrayLike) -> FloatArray:
    """min(1, a_m m / sum(1/p)) over the last axis of (batch, m), with its valid constant. Between the other two.

    >>> harmonic([[0.01, 0.03]]).round(3)
    array([0.03])
    """
    p = checked_p_values(p_values, ndim=2)
    return np.asarray(
        np.minimum(harmonic_constant(p.shape[1]) * stats.hmean(p, axis=1), 1.0), dtype=np.float64
    )


def fisher_assuming_independence(p_values: ArrayLike) -> FloatArray:
    """A WARNING EXAMPLE, not a detector: P(chi2_{2m} >= -2 sum log p), valid only for independent p-values.

    p-values of one input under several draws or detectors share the input and the calibration set. With them this
    rule gives false alarms far above epsilon. `merged_p_values` uses the same statistic and is valid.

    >>> fisher_assuming_independence([[0.5, 0.5]]).round(3)
    array([0.597])
    """
    p = checked_p_values(p_values, ndim=2)
    return np.asarray(stats.chi2.sf(-2 * np.log(p).sum(axis=1), 2 * p.shape[1]), dtype=np.float64)


def twice_the_median(p_values: ArrayLike) -> FloatArray:
    """min(1, 2 p_(ceil(R/2))) over the R repeats in the last axis of (batch, R). Rüger (1978).

    If the median is at most t, at least half of the p-values are, and by Markov that has probability <= 2t.

    >>> twice_the_median([[0.01, 0.02, 0.9]])
    array([0.04])
    """
    p = checked_p_values(p_values, ndim=2)
    middle = (p.shape[1] + 1) // 2 - 1
    return np.minimum(2 * np.partition(p, middle, axis=1)[:, middle], 1.0)


def e_values(p_values: ArrayLike, kappa: float | None = None) -> FloatArray:
    """e-values by a calibrator f with integral 1, so that E[f(P)] <= 1 on iD data. Large means strange.

    f(p) = kappa p^{kappa-1}, or with kappa=None the mixture over all kappa, f(p) = (1 - p + p log p) / (p log^2 p),
    which needs no choice. Vovk & Wang (2021), "E-values: calibration, combination and applications".

    >>> e_values([[0.04]], kappa=0.5)
    array([[2.5]])
    """
    p = np.asarray(p_values, dtype=np.float64)
    checked_p_values(p.ravel())
    if kappa is not None:
        if not 0.0 < kappa < 1.0:
            raise SettingError(
                f"kappa must lie strictly between 0 and 1, got {kappa}. A usual choice is 0.5."
            )
        power: FloatArray = kappa * p ** (kappa - 1)
        return power
    x = -np.log(p)
    # Near p = 1 the closed form is 0/0; its series in x = -log p is 1/2 + x/6 + x^2/24 + ...
    safe = np.where(x > 1e-3, x, 1.0)
    closed = (np.exp(safe) - 1 - safe) / safe**2
    mixture: FloatArray = np.where(x > 1e-3, closed, 0.5 + x / 6 + x**2 / 24)
    return mixture


def average_e_values(e: ArrayLike) -> FloatArray:
    """The mean over the repeats in the last axis of (batch, R): an e-value again, whatever the dependence.

    >>> average_e_values([[0.5, 3.5]])
    array([2.])
    """
    mean: FloatArray = _checked_e_values(e, ndim=2).mean(axis=1)
    return mean


def p_values_from_e_values(e: ArrayLike) -> FloatArray:
    """min(1, 1/e), a valid p-value by Markov's inequality: flagging at p < epsilon means e > 1/epsilon.

    >>> p_values_from_e_values([40.0, 0.5])
    array([0.025, 1.   ])
    """
    return 1.0 / np.maximum(_checked_e_values(e, ndim=1), 1.0)


def _checked_e_values(e: ArrayLike, ndim: int) -> FloatArray:
    array = checked_scores(e, "e-values", ndim)
    if array.min() < 0.0:
        raise ScoreError(
            f"e-values must not be negative, got {array.min():g}. Did log values come in their place?"
        )
    return array
