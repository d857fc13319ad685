"""Streams: martingales against crepes, MAPIE and closed forms; alarms against their guarantees."""

import math

import numpy as np
import pytest
from crepes.martingales import EpsilonBettingFunction, SimpleJumper, semi_online_p_values
from mapie.exchangeability_testing import OnlineMartingaleTest
from scipy import integrate, stats

from idecode_core.conformal import smoothed_p_values
from idecode_core.conformal.streams import (
    cusum_alarms,
    log_mixture,
    log_power,
    log_simple_jumper,
    online_p_values,
    shiryaev_roberts_alarms,
    ville_alarms,
)
from idecode_core.errors import ScoreError, SettingError

MARTINGALES = {"power": log_power, "mixture": log_mixture, "simple_jumper": log_simple_jumper}


def uniform_stream(seed, length):
    return 1 - np.random.default_rng(seed).random(length)


@pytest.mark.parametrize("jump", [0.01, 0.3])
@pytest.mark.parametrize("slopes", [(-1.0, 0.0, 1.0), (-1.5, -0.5, 0.5, 1.5)])
def test_the_simple_jumper_equals_crepes(jump, slopes):
    p = uniform_stream(0, 400) ** 2
    theirs = SimpleJumper(J=jump, bf=EpsilonBettingFunction(E=list(slopes))).apply(p)
    np.testing.assert_allclose(log_simple_jumper(p, jump, slopes), np.log(theirs), rtol=1e-9, atol=1e-9)


def test_the_simple_jumper_equals_mapie():
    p = uniform_stream(1, 300) ** 2
    theirs = OnlineMartingaleTest(test_method="jumper_martingale", jump_size=0.01, warn=False)
    expected = [theirs.update_simple_jumper_martingale(float(value)) for value in p]
    np.testing.assert_allclose(log_simple_jumper(p), np.log(expected), rtol=1e-9, atol=1e-9)


def test_the_power_martingale_is_its_product():
    p = uniform_stream(2, 50)
    for kappa in (0.1, 0.5, 0.92):
        expected = [math.prod(kappa * v ** (kappa - 1) for v in p[: t + 1]) for t in range(50)]
        np.testing.assert_allclose(np.exp(log_power(p, kappa)), expected, rtol=1e-9)


@pytest.mark.parametrize("exponent", [0.05, 1.0, 8.0])
def test_the_mixture_is_the_integral_of_power_martingales(exponent):
    p = uniform_stream(3, 40) ** exponent

    def capital(kappa, t):
        return math.exp(t * math.log(kappa) + (kappa - 1) * np.log(p[:t]).sum()) if kappa > 0 else 0.0

    expected = [integrate.quad(capital, 0, 1, args=(t,), epsabs=0, limit=200)[0] for t in range(1, 41)]
    np.testing.assert_allclose(log_mixture(p), np.log(expected), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", MARTINGALES)
@pytest.mark.parametrize("p", [1e-6, 0.3, 0.9999, 1.0])
def test_long_streams_stay_finite(name, p):
    assert np.all(np.isfinite(MARTINGALES[name](np.full(20_000, p))))


@pytest.mark.parametrize("name", MARTINGALES)
def test_each_bet_is_fair_whatever_came_before(name):
    # E[M_t / M_{t-1} | past] = 1: integrate over the last p-value. In x = -log p, where the power bet is smooth.
    past = uniform_stream(4, 10)

    def ratio(p):
        path = MARTINGALES[name](np.r_[past, p])
        return math.exp(path[-1] - path[-2])

    total, _ = integrate.quad(lambda x: ratio(math.exp(-x)) * math.exp(-x), 0, 100, limit=200)
    assert total == pytest.approx(1.0, abs=1e-4)


def test_online_p_values_equal_crepes_for_the_same_uniforms():
    scores = np.random.default_rng(5).integers(0, 10, 200).astype(float)  # ties
    start = 50

    class SameUniforms(np.random.Generator):
        def random(self, size):
            return 1.0 - np.random.RandomState(7).rand(200)[-size:]

    ours = online_p_values(scores[:start], scores[start:], generator=SameUniforms(np.random.PCG64(0)))
    np.testing.assert_allclose(ours, semi_online_p_values(scores, seed=7)[start:], rtol=1e-12)


def test_online_p_values_are_uniform_and_uncorrelated():
    # Error level 0.001 each. Calibration is tiny, so a fixed calibration set would show.
    generator = np.random.default_rng(6)
    runs = np.stack(
        [
            online_p_values(generator.integers(0, 4, 5), generator.integers(0, 4, 10), generator=generator)
            for _ in range(2_000)
        ]
    )
    assert stats.kstest(runs.ravel(), "uniform").pvalue > 0.001
    assert stats.pearsonr(runs[:, 0], runs[:, -1]).pvalue > 0.001


@pytest.mark.parametrize("name", MARTINGALES)
def test_without_a_change_any_alarm_has_probability_at_most_alpha(name):
    # Streams of 300 after 20 calibration points, alpha = 0.1. One-sided binomial test, error level 0.001.
    generator, alpha, repeats = np.random.default_rng(7), 0.1, 1_000
    alarmed = 0
    for _ in range(repeats):
        p = online_p_values(generator.normal(size=20), generator.normal(size=300), generator=generator)
        alarmed += ville_alarms(p, MARTINGALES[name], alpha=alpha).alarms.size > 0
    assert stats.binomtest(alarmed, repeats, alpha, alternative="greater").pvalue > 0.001


def test_a_fixed_calibration_set_breaks_the_promise_for_streams():
    generator, alpha, repeats = np.random.default_rng(8), 0.1, 200
    alarmed = 0
    for _ in range(repeats):
        p = smoothed_p_values(generator.normal(size=20), generator.normal(size=1_000), generator=generator)
        alarmed += ville_alarms(p, log_simple_jumper, alpha=alpha).alarms.size > 0
    assert stats.binomtest(alarmed, repeats, alpha, alternative="greater").pvalue < 1e-9


@pytest.mark.parametrize("name", ["power", "simple_jumper"])
def test_the_mean_time_to_a_false_cusum_alarm_is_at_least_as_promised(name):
    # Independent uniform p-values. Streams are cut at 5 times the promise, which only lowers the mean.
    promise, repeats = 50.0, 800
    generator = np.random.default_rng(9)
    times = []
    for _ in range(repeats):
        alarms = cusum_alarms(1 - generator.random(250), MARTINGALES[name], mean_time=promise).alarms
        times.append(alarms[0] + 1 if alarms.size else 250)
    assert np.mean(times) + 3.1 * np.std(times) / math.sqrt(repeats) >= promise


@pytest.mark.parametrize("name", MARTINGALES)
def test_a_change_raises_an_alarm_soon_after_it(name):
    generator = np.random.default_rng(10)
    stream = np.r_[generator.normal(size=300), generator.normal(loc=2.0, size=300)]
    p = online_p_values(generator.normal(size=500), stream, generator=generator)
    for alarms in (
        ville_alarms(p, MARTINGALES[name], alpha=0.001),
        cusum_alarms(p, MARTINGALES[name], mean_time=1e4),
    ):
        assert 300 <= alarms.alarms[0] < 600


def test_cusum_is_quicker_than_the_martingale_after_a_long_quiet_time():
    generator = np.random.default_rng(11)
    stream = np.r_[generator.normal(size=1_000), generator.normal(loc=2.0, size=300)]
    p = online_p_values(generator.normal(size=500), stream, generator=generator)
    cusum = cusum_alarms(p, log_power, mean_time=1e4).alarms[0]
    assert 1_000 <= cusum < 1_050
    assert ville_alarms(p, log_power, alpha=1e-4).alarms[0] > cusum + 100  # it has a debt to pay back


def test_after_an_alarm_the_martingale_begins_again_from_one():
    p = np.full(10, 0.01)
    found = ville_alarms(p, log_power)
    assert found.log_threshold == pytest.approx(math.log(100))
    assert found.alarms.tolist() == [2, 5, 8]
    assert found.log_path == pytest.approx(np.r_[np.tile(log_power(p[:3]), 3), log_power(p[:1])])


def test_cusum_is_the_largest_gain_since_any_earlier_time():
    p = uniform_stream(12, 60)
    log_m = np.r_[0.0, log_power(p)]
    expected = [max(log_m[t] - log_m[i] for i in range(t)) for t in range(1, 61)]
    assert cusum_alarms(p, log_power, mean_time=1e9).log_path == pytest.approx(expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda: log_power([0.5], kappa=1.0),
        lambda: log_simple_jumper([0.5], jump=0.0),
        lambda: log_simple_jumper([0.5], slopes=(2.0,)),
        lambda: ville_alarms([0.5], alpha=1.0),
        lambda: cusum_alarms([0.5], mean_time=1.0),
    ],
)
def test_settings_out_of_range_are_refused(call):
    with pytest.raises(SettingError):
        call()


def test_a_p_value_of_zero_is_refused_because_every_bet_would_be_infinite():
    with pytest.raises(ScoreError, match="above 0"):
        log_power([0.0, 0.5])


def test_the_shiryaev_roberts_sum_is_its_recursion_and_is_never_later_than_cusum():
    """R_t = (R_{t-1} + 1) M_t / M_{t-1}."""
    p = np.random.default_rng(9).random(300) ** 1.3
    found = shiryaev_roberts_alarms(p, log_power, mean_time=1e300)
    growth, r = 0.5 * p**-0.5, 0.0
    for t in range(300):
        r = (r + 1) * growth[t]
        assert found.log_path[t] == pytest.approx(np.log(r), abs=1e-9)
    first = shiryaev_roberts_alarms(p, log_power, mean_time=50).alarms[0]
    assert first <= cusum_alarms(p, log_power, mean_time=50).alarms[0]
    with pytest.raises(SettingError, match="mean_time"):
        shiryaev_roberts_alarms(p, mean_time=1.0)


def test_the_mean_time_to_a_false_shiryaev_roberts_alarm_is_at_least_as_promised():
    """Mean of 400 first times, cut off at 2,000 (which lowers it), plus 3.3 standard errors."""
    generator, times = np.random.default_rng(10), []
    for _ in range(400):
        alarms = shiryaev_roberts_alarms(1 - generator.random(2_000), mean_time=200).alarms
        times.append(alarms[0] + 1 if alarms.size else 2_000)
    assert np.mean(times) + 3.3 * np.std(times) / 20 >= 200
