"""Eq. 5, its ties, its uniformity, and the threshold that it amounts to."""

import math
import warnings

import numpy as np
import pytest
from crepes.base import p_values_batch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from idecode_core.conformal import (
    check_epsilon,
    flagging_rank,
    k_needed,
    p_values,
    ranks,
    smallest_epsilon,
    smoothed_p_values,
    threshold,
)
from idecode_core.errors import NothingFlaggedWarning, ScoreError, SettingError

# Few distinct values, so that ties are the rule and not the exception.
tied_scores = arrays(np.float64, st.integers(1, 40), elements=st.integers(-3, 3).map(float))
any_scores = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e9, 1e9))
epsilons = st.one_of(
    st.floats(min_value=1e-6, max_value=1 - 1e-9),
    # The dangerous ones: exactly on the lattice j/m, where epsilon * (k+1) may round across an integer.
    st.integers(2, 300).flatmap(lambda m: st.integers(1, m - 1).map(lambda j: j / m)),
    st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.3, 0.7]),
)


@given(st.one_of(tied_scores, any_scores), st.one_of(tied_scores, any_scores))
def test_p_values_equal_counting_by_hand_and_crepes(calibration, test):
    by_hand = [(sum(1 for c in calibration if c >= s) + 1) / (len(calibration) + 1) for s in test]
    assert p_values(calibration, test).tolist() == by_hand
    assert p_values(calibration, test).tolist() == p_values_batch(calibration, test, smoothing=False).tolist()
    assert ranks(calibration, test).tolist() == [sum(1 for c in calibration if c >= s) for s in test]


@given(tied_scores, tied_scores, st.integers(0, 2**32 - 1))
def test_smoothed_p_values_equal_crepes_for_the_same_uniforms(calibration, test, seed):
    class SameUniforms(np.random.Generator):
        """Gives 1 - theta, because ours uses 1 - random(), where theta is what crepes draws from this seed."""

        def random(self, size):
            return 1.0 - np.random.RandomState(seed).rand(size)

    ours = smoothed_p_values(calibration, test, generator=SameUniforms(np.random.PCG64(0)))
    np.testing.assert_allclose(ours, p_values_batch(calibration, test, seed=seed), rtol=1e-12)


def test_tied_calibration_scores_raise_the_p_value():
    assert p_values([1.0, 2.0, 2.0, 2.0], [2.0]).tolist() == [4 / 5]
    assert p_values([1.0, 2.0, 2.0, 2.0], [np.nextafter(2.0, 3.0)]).tolist() == [1 / 5]


def test_float32_scores_rank_as_they_are():
    calibration = np.array([0.1, 0.2], dtype=np.float32)
    assert ranks(calibration, calibration).tolist() == [2, 1]


def test_a_million_tests_against_a_million_calibration_points():
    generator = np.random.default_rng(1)
    calibration, test = generator.integers(0, 10**6, size=(2, 10**6)).astype(np.float64)
    counts = np.bincount(calibration.astype(int), minlength=10**6)
    at_least = counts[::-1].cumsum()[::-1]  # at_least[v] = #{calibration >= v}, counted another way
    assert np.array_equal(ranks(calibration, test), at_least[test.astype(int)])


def test_smoothed_p_values_are_uniform_even_with_massive_ties():
    # Each repeat has its own calibration set, so the p-values are independent. Error level 0.001.
    generator = np.random.default_rng(2)
    draws = [
        smoothed_p_values(*np.split(generator.integers(0, 3, 20), [19]), generator=generator)[0]
        for _ in range(5_000)
    ]
    assert stats.kstest(draws, "uniform").pvalue > 0.001


def test_conservative_p_values_are_uniform_on_the_lattice_without_ties():
    # k = 9: each of 10 levels has probability 1/10. Error level 0.001.
    generator = np.random.default_rng(3)
    scores = generator.normal(size=(10_000, 10))
    p = [p_values(row[:9], row[9:])[0] for row in scores]
    counts = np.bincount(np.rint(np.array(p) * 10).astype(int), minlength=11)[1:]
    assert stats.chisquare(counts).pvalue > 0.001


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("tied", [False, True])
def test_the_bound_of_theorem_1_holds(epsilon, tied):
    # A one-sided binomial test that P(p < epsilon) <= epsilon, error level 0.001.
    generator = np.random.default_rng(4)
    scores = generator.normal(size=(10_000, 51))
    scores = np.round(scores) if tied else scores
    flagged = sum(p_values(row[:50], row[50:])[0] < epsilon for row in scores)
    assert stats.binomtest(int(flagged), len(scores), epsilon, alternative="greater").pvalue > 0.001


@given(st.integers(1, 400), epsilons)
def test_J_agrees_with_the_rule_p_below_epsilon(k, epsilon):
    levels = [rank / (k + 1) for rank in range(1, k + 2)]
    assert flagging_rank(k, epsilon) == sum(level < epsilon for level in levels)


def test_J_is_right_where_the_product_rounds_across_an_integer():
    assert math.ceil(0.07 * 100) - 1 == 7  # the plain formula: 0.07 * 100 is 7.000000000000001
    assert flagging_rank(99, 0.07) == 6
    calibration = np.arange(1.0, 100.0)
    assert (
        p_values(calibration, calibration) < 0.07
    ).sum() == 5  # p = 2/100 ... 6/100 for the points themselves


@given(st.one_of(tied_scores, any_scores), st.one_of(tied_scores, any_scores), epsilons)
def test_above_the_threshold_means_flagged_and_nothing_else_does(calibration, test, epsilon):
    flagged = p_values(calibration, test) < epsilon
    assert np.array_equal(test > threshold(calibration, epsilon), flagged)


@given(st.integers(1, 10_000))
def test_smallest_epsilon_can_flag_and_the_next_smaller_number_cannot(k):
    assert flagging_rank(k, smallest_epsilon(k)) == 1
    assert flagging_rank(k, math.nextafter(smallest_epsilon(k), 0)) == 0


@given(epsilons)
def test_k_needed_is_the_first_k_that_can_flag(epsilon):
    k = k_needed(epsilon)
    assert flagging_rank(k, epsilon) >= 1
    assert k == 1 or flagging_rank(k - 1, epsilon) == 0


def test_k_needed_stays_finite_for_absurd_epsilons():
    assert k_needed(5e-324) > 10**300


@pytest.mark.parametrize("bad", [[], [np.nan], [1.0, np.inf], [[1.0]], ["a"]])
@pytest.mark.parametrize("function", [p_values, ranks, lambda c, t: smoothed_p_values(c, t, generator=None)])
def test_scores_that_cannot_be_ranked_are_refused(bad, function):
    with pytest.raises(ScoreError, match="calibration_scores"):
        function(bad, [1.0])
    with pytest.raises(ScoreError, match="test_scores"):
        function([1.0], bad)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_epsilon_outside_the_open_interval_is_refused(epsilon):
    with pytest.raises(SettingError, match="strictly between 0 and 1"):
        check_epsilon(epsilon)
    with pytest.raises(SettingError):
        threshold([1.0], epsilon)


def test_an_epsilon_too_small_for_k_warns_with_the_k_needed():
    with pytest.warns(
        NothingFlaggedWarning, match=r"k=75: the smallest p-value is 1/76 ≈ 0.013.*at least 100"
    ):
        check_epsilon(0.01, k=75)
    with pytest.warns(NothingFlaggedWarning, match="at least 20"):
        check_epsilon(0.05, k=19)  # 1/20 is not below 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_epsilon(0.05, k=20)
        check_epsilon(0.01)


@pytest.mark.parametrize("call", [lambda: smallest_epsilon(0), lambda: flagging_rank(0, 0.1)])
def test_an_empty_calibration_has_no_law(call):
    with pytest.raises(SettingError, match="at least 1"):
        call()
