"""The law of the false detection rate over calibration sets, against simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from idecode_core.conformal import FalseDetectionLaw, exceeding_share, smallest_epsilon, threshold
from idecode_core.errors import SettingError


@pytest.mark.parametrize(("k", "epsilon"), [(20, 0.1), (99, 0.05), (200, 0.3)])
def test_the_false_detection_rate_follows_the_beta_law(k, epsilon):
    # For uniform scores the true rate of a calibration set is 1 - threshold. Error level 0.001.
    generator = np.random.default_rng(5)
    rates = [1 - threshold(generator.random(k), epsilon) for _ in range(3_000)]
    law = FalseDetectionLaw(k, epsilon)
    assert stats.kstest(rates, lambda rate: stats.beta.cdf(rate, law.J, k + 1 - law.J)).pvalue > 0.001
    low, high = law.interval(0.9)
    inside = sum(low <= rate <= high for rate in rates)
    assert stats.binomtest(inside, len(rates), 0.9).pvalue > 0.001
    below = sum(rate <= law.quantile(0.25) for rate in rates)
    assert stats.binomtest(below, len(rates), 0.25).pvalue > 0.001


@given(st.integers(1, 5_000), st.floats(min_value=1e-6, max_value=1 - 1e-9))
def test_the_mean_rate_is_at_most_epsilon_and_within_one_step_of_it(k, epsilon):
    law = FalseDetectionLaw(k, epsilon)
    assert law.mean < epsilon <= law.mean + 1 / (k + 1) + 1e-12


def test_without_a_usable_level_the_rate_is_zero():
    law = FalseDetectionLaw(k=10, epsilon=0.05)
    assert (law.J, law.mean, law.quantile(0.99), law.interval(0.9)) == (0, 0.0, 0.0, (0.0, 0.0))
    assert threshold(np.arange(10.0), 0.05) == math.inf


def test_the_share_of_calibration_sets_above_epsilon_agrees_with_simulation():
    # True rate of a uniform score above the J-th largest of k: 1 - that order statistic. 20,000 sets: standard
    # error 0.0035; five of them.
    law = FalseDetectionLaw(99, 0.1)
    sets = np.sort(np.random.default_rng(2).random((20_000, 99)), axis=1)
    rates = 1 - sets[:, 99 - law.J]
    assert exceeding_share(law) == pytest.approx((rates > 0.1).mean(), abs=0.018)
    assert exceeding_share(FalseDetectionLaw(5, 0.05)) == 0.0


@pytest.mark.parametrize("call", [lambda law: law.quantile(1.1), lambda law: law.interval(1.0)])
def test_levels_out_of_range_are_refused(call):
    with pytest.raises(SettingError):
        call(FalseDetectionLaw(100, 0.05))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_epsilon_outside_the_open_interval_has_no_law(epsilon):
    with pytest.raises(SettingError):
        FalseDetectionLaw(100, epsilon)


@given(st.integers(1, 10_000))
def test_the_law_knows_the_smallest_usable_epsilon(k):
    usable = smallest_epsilon(k)
    assert FalseDetectionLaw(k, usable).J == 1
    assert FalseDetectionLaw(k, math.nextafter(usable, 0)).J == 0
