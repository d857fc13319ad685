"""What the bound on false detections looks like in practice: resampled calibration sets, observed rates, exact bands.

Everything here ranks scores that are already there; no model is run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from idecode_core.conformal import (
    FloatArray,
    IntArray,
    checked_p_values,
    checked_scores,
    flagging_rank,
    p_values,
    smoothed_p_values,
)
from idecode_core.errors import SettingError


def resampled_rates(
    calibration_scores: ArrayLike,
    test_scores: ArrayLike,
    *,
    k: int,
    epsilons: Sequence[float],
    repeats: int,
    replacement: bool = True,
    generator: np.random.Generator,
) -> FloatArray:
    """The paper's Fig. 1: false detection rates of iD test points under `repeats` calibration sets of size k.

    Each set is drawn from the available calibration scores, in the paper with replacement. Shape (repeats, len(epsilons)).
    """
    pool = checked_scores(calibration_scores, "calibration_scores")
    test = np.sort(checked_scores(test_scores, "test_scores"))
    if repeats < 1:
        raise SettingError(f"repeats must be at least 1, got {repeats}.")
    ranks = [flagging_rank(k, epsilon) for epsilon in epsilons]
    rates = np.zeros((repeats, len(ranks)))
    for repeat in range(repeats):
        drawn = np.sort(generator.choice(pool, size=k, replace=replacement))[::-1]  # falling
        for column, j in enumerate(ranks):
            if j > 0:  # flagged: strictly above the j-th largest calibration score
                above = test.size - np.searchsorted(test, drawn[j - 1], side="right")
                rates[repeat, column] = above / test.size
    return rates


@dataclass(frozen=True)
class ObservedRate:
    """How many of the iD test points were flagged, with the exact (Clopper-Pearson) interval of the true rate."""

    epsilon: float
    flagged: int
    total: int
    low: float
    high: float

    @property
    def rate(self) -> float:
        return self.flagged / self.total


def observed_rate(p_values: ArrayLike, epsilon: float, level: float = 0.95) -> ObservedRate:
    """The false detection rate on these iD points, for the calibration set that their p-values come from.

    >>> rate = observed_rate([0.01, 0.2, 0.5, 0.9], epsilon=0.05)
    >>> rate.rate, round(rate.low, 4), round(rate.high, 4)
    (0.25, 0.0063, 0.8059)
    """
    p = checked_p_values(p_values)
    return counted_rate(int(np.count_nonzero(p < epsilon)), p.size, epsilon, level)


def counted_rate(flagged: int, total: int, epsilon: float, level: float = 0.95) -> ObservedRate:
    """The same where the iD points that are flagged have been counted already."""
    interval = stats.binomtest(flagged, total).proportion_ci(level, method="exact")
    return ObservedRate(epsilon, flagged, total, float(interval.low), float(interval.high))


PREDICTED = 0.99
"""The level of predictive bands; that of the bands in RESULTS.md."""


def predictive_bands(
    k: int, epsilons: Sequence[float], points: int, level: float = PREDICTED
) -> tuple[FloatArray, FloatArray]:
    """`conformal.observed_band` for many epsilons at once: lower and upper ends of the rate seen on `points` test points.

    The calibration set's own chance and the test set's are both in it.

    >>> low, high = predictive_bands(5000, [0.0001, 0.05], 2500)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.037]), array([0.   , 0.064]))
    """
    low, high = np.array(
        [_predictive_band(k, flagging_rank(k, epsilon), points, level) for epsilon in epsilons]
    ).T
    return low / points, high / points


@lru_cache(maxsize=4096)
def _predictive_band(k: int, j: int, points: int, level: float) -> tuple[int, int]:
    """Counts; figures ask for many of these whenever a slider moves."""
    return _bin_band(points, j, k, level) if j > 0 else (0, 0)


@dataclass(frozen=True, eq=False)
class Study:
    """What calibration sets of size k do to one iD test set."""

    k: int
    epsilons: tuple[float, ...]
    resampled: FloatArray  # (repeats, len(epsilons)): false detection rates
    observed: tuple[ObservedRate, ...]  # with one calibration set of size k
    p_values: FloatArray  # of the iD test points, with that set


def study(
    calibration_scores: ArrayLike,
    id_scores: ArrayLike,
    *,
    k: int,
    epsilons: Sequence[float],
    repeats: int = 100,
    smoothed: bool = False,
    generator: np.random.Generator,
) -> Study:
    """Take k of the calibration scores at random, see what is flagged among iD test points; then resample."""
    pool = checked_scores(calibration_scores, "calibration_scores")
    test = checked_scores(id_scores, "id_scores")
    if not 1 <= k <= pool.size:
        raise SettingError(
            f"k must lie between 1 and {pool.size}, the number of calibration points, got {k}."
        )
    chosen = pool[generator.permutation(pool.size)[:k]]
    p = smoothed_p_values(chosen, test, generator=generator) if smoothed else p_values(chosen, test)
    return Study(
        k,
        tuple(epsilons),
        resampled_rates(pool, test, k=k, epsilons=epsilons, repeats=repeats, generator=generator),
        tuple(observed_rate(p, epsilon) for epsilon in epsilons),
        p,
    )


@dataclass(frozen=True, eq=False)
class PValueHistogram:
    """Counts of iD p-values in equal bins, with the band that holds a bin's count under exchangeability."""

    edges: FloatArray  # (bins + 1,)
    counts: IntArray  # (bins,)
    expected: FloatArray  # (bins,)
    low: FloatArray  # (bins,)
    high: FloatArray  # (bins,)


def p_value_histogram(p_values: ArrayLike, k: int, bins: int = 20, level: float = 0.95) -> PValueHistogram:
    """Are iD p-values uniform? Bins (0, 1/bins], ... with an exact band for each, over calibration and test sets.

    A bin that holds r of the k+1 levels i/(k+1) gets a number of points that is BetaBinomial(m, r, k+1-r): the
    calibration set decides the bin's true share, which is Beta(r, k+1-r), and m test points are then drawn.
    """
    p = checked_p_values(p_values)
    if bins < 2 or bins > k + 1:
        raise SettingError(
            f"bins must lie between 2 and k+1 = {k + 1}, the number of p-value levels, got {bins}."
        )
    edges = np.linspace(0.0, 1.0, bins + 1)
    # Levels i/(k+1) are counted in the bin (edge, next edge]; the margin keeps i/(k+1) = edge on its side.
    levels = np.floor(edges * (k + 1) + 1e-9).astype(np.int64)
    inside = np.diff(levels)
    place = np.searchsorted(edges, p - 1e-12, side="left") - 1
    counts = np.bincount(np.clip(place, 0, bins - 1), minlength=bins).astype(np.int64)
    bands = {int(r): _bin_band(p.size, int(r), k, level) for r in np.unique(inside)}
    low, high = np.array([bands[int(r)] for r in inside]).T
    return PValueHistogram(edges, counts, p.size * inside / (k + 1), low, high)


def _bin_band(m: int, r: int, k: int, level: float) -> tuple[int, int]:
    """Central quantiles of BetaBinomial(m, r, k+1-r), by summing its probabilities: `ppf` is slow."""
    below = np.cumsum(stats.betabinom.pmf(np.arange(m + 1), m, r, k + 1 - r))
    tail = (1 - level) / 2
    return int(np.searchsorted(below, tail)), int(np.searchsorted(below, 1 - tail))
