"""Guarantees for the calibration set at hand."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from idecode_core.conformal import flagging_rank, p_values, threshold
from idecode_core.conformal.conditional import (
    adjusted_p_values,
    corrected_epsilon,
    dkw_bounds,
    k_needed_for_corrected_epsilon,
    monte_carlo_bounds,
    simes_bounds,
)
from idecode_core.errors import NothingFlaggedWarning, ScoreError, SettingError

BOUNDS = {
    "simes": simes_bounds,
    "dkw": dkw_bounds,
    "monte_carlo": lambda k, delta: monte_carlo_bounds(k, delta, generator=np.random.default_rng(0)),
}


@pytest.mark.filterwarnings("ignore::idecode_core.errors.NothingFlaggedWarning")
@given(st.integers(1, 300), st.floats(0.01, 0.6), st.floats(0.01, 0.5))
def test_the_corrected_epsilon_is_the_largest_whose_beta_law_stays_below(k, epsilon, delta):
    j = np.arange(1, k + 1)
    kept = stats.beta.cdf(epsilon, j, k + 1 - j)
    assume(np.all(np.abs(kept - (1 - delta)) > 1e-9))  # exact equality is a matter of rounding
    usable = [0, *j[kept > 1 - delta].tolist()]
    corrected = corrected_epsilon(k, epsilon, delta)
    assert corrected == (max(usable) + 1) / (k + 1)
    assert corrected == 1.0 or flagging_rank(k, corrected) == max(usable)


def test_the_corrected_rate_exceeds_epsilon_for_at_most_delta_of_the_calibration_sets():
    # Uniform scores: the true rate of a calibration set is 1 - threshold. Error level 0.001.
    generator, k, epsilon, delta = np.random.default_rng(0), 200, 0.1, 0.1
    corrected = corrected_epsilon(k, epsilon, delta)
    sets = generator.random((4_000, k))
    exceed = sum(1 - threshold(scores, corrected) > epsilon for scores in sets)
    assert stats.binomtest(exceed, len(sets), delta, alternative="greater").pvalue > 0.001
    # The plain rule does exceed it about half of the time: the correction is not vacuous.
    plain = sum(1 - threshold(scores, epsilon) > epsilon for scores in sets)
    assert plain / len(sets) > 0.35


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 0.1), (0.01, 0.05), (0.3, 0.5)])
def test_the_k_needed_is_the_first_that_does_not_warn(epsilon, delta):
    k = k_needed_for_corrected_epsilon(epsilon, delta)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corrected_epsilon(k, epsilon, delta)
    with pytest.warns(NothingFlaggedWarning, match=f"k of at least {k}"):
        assert corrected_epsilon(k - 1, epsilon, delta) == 1 / k  # nothing lies below the smallest p-value


@pytest.mark.parametrize("k", [1, 2, 5, 12])
def test_simes_bounds_equal_their_products(k):
    m, delta = max(k // 2, 1), 0.2
    falling = [math.prod(range(i - m + 1, i + 1)) if i >= m else 0 for i in range(k + 1)]
    expected = [
        1 - (delta * float(Fraction(falling[k + 1 - index], falling[k]))) ** (1 / m)
        for index in range(1, k + 1)
    ]
    np.testing.assert_allclose(simes_bounds(k, delta), [*expected, 1.0], rtol=1e-12)


@pytest.mark.parametrize(("k", "delta"), [(5, 0.5), (50, 0.1), (1000, 0.01)])
def test_dkw_bounds_hold_by_the_exact_law_of_the_one_sided_distance(k, delta):
    # max_i (U_(i) - (i-1)/k) is the one-sided Kolmogorov-Smirnov distance, whose exact law scipy knows.
    margin = dkw_bounds(k, delta)[0]
    assert stats.ksone.sf(margin, k) <= delta
    assert stats.ksone.sf(margin, k) > delta / 4


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize(("k", "delta"), [(20, 0.3), (300, 0.1)])
def test_all_bounds_hold_together_with_the_promised_probability(name, k, delta):
    # One-sided binomial test, error level 0.001.
    bounds = BOUNDS[name](k, delta)
    assert bounds.shape == (k + 1,)
    assert bounds[-1] == 1.0
    assert np.all(np.diff(bounds) >= 0)
    order_statistics = np.sort(np.random.default_rng(1).random((4_000, k)), axis=1)
    broken = int(np.any(order_statistics > bounds[:k], axis=1).sum())
    assert stats.binomtest(broken, 4_000, delta, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize("name", BOUNDS)
def test_adjusted_p_values_keep_every_epsilon_for_most_calibration_sets(name):
    # End to end with uniform scores: the rate of {adjusted p <= t} is the length of that set of scores.
    k, delta, repeats = 60, 0.2, 500
    generator, bounds = np.random.default_rng(2), BOUNDS[name](60, 0.2)
    grid = (np.arange(2_000) + 0.5) / 2_000
    broken = 0
    for _ in range(repeats):
        adjusted = adjusted_p_values(p_values(generator.random(k), grid), bounds)
        levels = np.unique(adjusted)
        rates = np.array([np.mean(adjusted <= level) for level in levels])
        broken += bool(np.any(rates > levels + 1 / 2_000))
    assert stats.binomtest(broken, repeats, delta, alternative="greater").pvalue > 0.001


@given(st.integers(1, 500))
def test_the_p_value_i_of_k_plus_1_becomes_the_i_th_bound(k):
    bounds = (np.arange(k + 1) + 1.5) / (k + 1.5)
    p = np.arange(1, k + 2) / (k + 1)
    assert np.array_equal(adjusted_p_values(p, bounds), bounds)
    assert adjusted_p_values([0.5 / (k + 1)], bounds)[0] == bounds[0]  # smoothed: rounded up


def test_monte_carlo_is_tighter_than_dkw_where_it_matters():
    simes, dkw, monte_carlo = (bounds(1_000, 0.1)[:50] for bounds in BOUNDS.values())
    assert np.all(monte_carlo < dkw)
    assert np.all(simes < dkw)


def test_bad_settings_have_one_clear_sentence():
    for function in BOUNDS.values():
        with pytest.raises(SettingError, match="delta must lie"):
            function(10, 0.0)
        with pytest.raises(SettingError, match="at least 1"):
            function(0, 0.1)
    with pytest.raises(SettingError, match=r"at most 0\.5"):
        dkw_bounds(10, 0.6)
    with pytest.raises(SettingError, match="at least 1000"):
        monte_carlo_bounds(10, 0.001, generator=np.random.default_rng(0), repeats=100)
    with pytest.raises(ScoreError, match="at most 1"):
        adjusted_p_values([2.0], [0.5, 1.0])
