"""p-values over repeated draws of one input, combined into one answer that depends less on the luck of the draw.

Repeated p-values of an input depend on each other in an unknown way; both rules are valid under any dependence.
More draws n inside one score vector lose no factor: prefer that when the detector can be run again.
"""

import numpy as np
from numpy.typing import ArrayLike

from idecode_core.conformal import FloatArray, checked_p_values, checked_scores
from idecode_core.errors import ScoreError, SettingError


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
