"""Repeated draws of one input, combined."""

import math
import statistics

import numpy as np
import pytest
from scipy import integrate, stats

from idecode_core.conformal import p_values
from idecode_core.conformal.merging import (
    average_e_values,
    e_values,
    p_values_from_e_values,
    twice_the_median,
)
from idecode_core.errors import ScoreError, SettingError


def repeated_p_values(generator, points, repeats, k=200, strange=0.0):
    """p-values (points, repeats): a point keeps its own effect, each repeat draws again for it and for calibration."""
    point = generator.normal(loc=strange, size=points)
    calibration_point = generator.normal(size=k)
    columns = [
        p_values(calibration_point + generator.normal(size=k), point + generator.normal(size=points))
        for _ in range(repeats)
    ]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("repeats", [1, 2, 5, 8])
def test_twice_the_median_is_twice_the_lower_median(repeats):
    p = 1 - np.random.default_rng(0).random((30, repeats))
    expected = [min(1.0, 2 * statistics.median_low(row)) for row in p.tolist()]
    assert twice_the_median(p).tolist() == expected


@pytest.mark.parametrize("kappa", [None, 0.2, 0.5, 0.9])
def test_calibrators_integrate_to_one(kappa):
    # In x = -log p, so that the singularity at p = 0 is no trouble.
    total, _ = integrate.quad(lambda x: e_values([math.exp(-x)], kappa)[0] * math.exp(-x), 0, 700)
    # The mixture's tail beyond x is 1/x - ..., which the closed form of the rest supplies.
    tail = 0.0 if kappa else 1 / 700
    assert total + tail == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("p", [1e-12, 0.01, 0.5, 0.99, 0.9989, 0.9991, 0.9999999, 1.0])
def test_the_mixture_calibrator_is_the_integral_over_kappa(p):
    expected, _ = integrate.quad(lambda kappa: kappa * p ** (kappa - 1), 0, 1, epsabs=0, epsrel=1e-10)
    assert e_values([p])[0] == pytest.approx(expected, rel=1e-6)


def test_combined_answers_keep_the_bound():
    # Each repeat of the simulation has its own calibration and one point. Error level 0.001.
    generator, count = np.random.default_rng(1), 3_000
    p = np.concatenate([repeated_p_values(generator, 1, 5, k=50) for _ in range(count)])
    averaged = average_e_values(e_values(p))
    for epsilon in (0.05, 0.2):
        for combined in (twice_the_median(p), p_values_from_e_values(averaged)):
            flagged = int((combined < epsilon).sum())
            assert stats.binomtest(flagged, count, epsilon, alternative="greater").pvalue > 0.001
    # E[e] <= 1, mean minus 3.1 standard errors.
    assert averaged.mean() - 3.1 * averaged.std() / math.sqrt(count) <= 1.0


def test_the_smallest_of_several_draws_is_not_valid():
    generator, count, epsilon = np.random.default_rng(2), 1_000, 0.05
    p = np.concatenate([repeated_p_values(generator, 1, 5, k=50) for _ in range(count)])
    flagged = int((p.min(axis=1) < epsilon).sum())
    assert stats.binomtest(flagged, count, epsilon, alternative="greater").pvalue < 1e-6


def test_combined_answers_vary_less_than_single_draws():
    p = repeated_p_values(np.random.default_rng(3), 1, 400, strange=2.5)[0]
    medians = twice_the_median(p.reshape(20, 20)) / 2
    assert medians.std() < p.std() / 2


def test_strange_points_have_large_e_values_and_small_combined_p_values():
    p = repeated_p_values(np.random.default_rng(4), 20, 9, k=2_000, strange=8.0)
    assert np.all(average_e_values(e_values(p)) > 20)
    assert np.all(twice_the_median(p) < 0.01)


def test_flagging_by_e_values_is_markov():
    assert p_values_from_e_values([20.0, 0.0, 1.0]).tolist() == [0.05, 1.0, 1.0]


def test_bad_input_has_one_clear_sentence():
    with pytest.raises(SettingError, match="kappa"):
        e_values([0.5], kappa=1.0)
    with pytest.raises(ScoreError, match="above 0"):
        e_values([0.0])
    with pytest.raises(ScoreError, match="not be negative"):
        p_values_from_e_values([-1.0])
