"""The bound in practice: rates that are seen, and the bands around them; each number is computed a second way."""

import numpy as np
import pytest
from scipy import stats

from idecode_core.conformal import FalseDetectionLaw, p_values
from idecode_core.conformal.observed import observed_rate, p_value_histogram, resampled_rates
from idecode_core.errors import SettingError


def test_resampled_rates_are_the_share_of_p_values_below_epsilon():
    generator = np.random.default_rng(0)
    calibration, test = generator.normal(size=80).round(1), generator.normal(size=200).round(1)  # with ties
    epsilons = [0.001, 0.05, 0.3, 0.5]
    rates = resampled_rates(
        calibration, test, k=50, epsilons=epsilons, repeats=7, generator=np.random.default_rng(5)
    )
    again = np.random.default_rng(5)
    for row in rates:
        drawn = calibration[again.integers(80, size=50)]
        expected = [(p_values(drawn, test) < epsilon).mean() for epsilon in epsilons]
        np.testing.assert_allclose(row, expected, atol=1e-12)


def test_resampled_rates_of_exchangeable_scores_average_to_the_law():
    # With replacement from a pool as large as this one, the rate's mean is J/(k+1) up to the pool's own error,
    # sqrt(0.1 * 0.9 / 200,000) = 0.0007, and the test set's, as large; seed fixed, bound at five times their sum.
    generator = np.random.default_rng(1)
    rates = resampled_rates(
        generator.random(200_000),
        generator.random(200_000),
        k=500,
        epsilons=[0.1],
        repeats=400,
        generator=generator,
    )
    law = FalseDetectionLaw(500, 0.1)
    assert abs(rates.mean() - law.mean) < 5 * (0.0007 * 2**0.5 + rates.std() / 20)
    assert rates.std() == pytest.approx(np.sqrt(law.mean * (1 - law.mean) / 502), rel=0.15)


def test_no_repeats_is_refused():
    with pytest.raises(SettingError, match="repeats"):
        resampled_rates([1.0], [1.0], k=1, epsilons=[0.5], repeats=0, generator=np.random.default_rng(0))


def test_the_interval_of_an_observed_rate_is_clopper_pearson():
    p = np.r_[np.full(7, 0.01), np.full(93, 0.5)]
    found = observed_rate(p, 0.05)
    # The textbook form through Beta quantiles.
    assert found.low == pytest.approx(stats.beta.ppf(0.025, 7, 94), abs=1e-9)
    assert found.high == pytest.approx(stats.beta.ppf(0.975, 8, 93), abs=1e-9)
    assert (found.flagged, found.total, found.rate) == (7, 100, 0.07)


def test_a_p_value_equal_to_epsilon_is_not_flagged():
    assert observed_rate([0.05, 0.05, 0.9], 0.05).flagged == 0


def test_the_histogram_counts_every_p_value_once_and_levels_on_an_edge_go_left():
    k = 19
    p = np.arange(1, 21) / 20  # each level once
    histogram = p_value_histogram(p, k, bins=10)
    assert histogram.counts.tolist() == [2] * 10
    np.testing.assert_allclose(histogram.expected, 2.0)


def test_the_band_of_the_histogram_holds_95_percent_of_bins_under_exchangeability():
    generator = np.random.default_rng(3)
    inside = []
    for _ in range(300):
        p = p_values(generator.random(99), generator.random(200))
        histogram = p_value_histogram(p, 99, bins=10)
        inside.append((histogram.counts >= histogram.low) & (histogram.counts <= histogram.high))
    # Counts are whole, so the band holds a little more than its level; 3,000 bins, error 0.004, bound at five.
    assert 0.95 - 0.02 < np.mean(inside) < 0.99


def test_the_band_is_the_quantile_of_the_beta_binomial_law():
    histogram = p_value_histogram(np.full(1000, 0.5), 19, bins=10)
    law = stats.betabinom(1000, 2, 18)
    assert (histogram.low[3], histogram.high[3]) == (law.ppf(0.025), law.ppf(0.975))


def test_more_bins_than_levels_are_refused():
    with pytest.raises(SettingError, match="bins"):
        p_value_histogram([0.5, 1.0], k=1, bins=3)
