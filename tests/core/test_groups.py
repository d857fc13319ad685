"""Group-conditional calibration."""

import numpy as np
import pytest
from crepes.base import p_values_batch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from idecode_core.conformal import flagging_rank, p_values, smallest_epsilon
from idecode_core.conformal.groups import (
    mondrian_p_values,
    rates_by_group,
    reading,
    smallest_epsilon_by_group,
)
from idecode_core.errors import ScoreError


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_p_values_equal_crepes_with_its_bins(seed, groups):
    generator = np.random.default_rng(seed)
    calibration, test = generator.integers(0, 6, 40).astype(float), generator.integers(0, 6, 15).astype(float)
    bins = np.r_[np.arange(groups), generator.integers(0, groups, 40 - groups)]
    test_bins = generator.integers(0, groups, 15)
    expected = p_values_batch(calibration, test, bins, test_bins, smoothing=False)
    assert np.array_equal(mondrian_p_values(calibration, bins, test, test_bins), expected)


def test_the_bound_holds_in_every_group_where_the_plain_one_fails():
    # The group "b" is three times as noisy. Binomial tests, error level 0.001.
    generator, epsilon, repeats = np.random.default_rng(0), 0.1, 3_000
    calibration_groups = np.array(["a"] * 60 + ["b"] * 20)
    scale = np.where(calibration_groups == "a", 1.0, 3.0)
    flagged = {"mondrian": np.zeros(2), "plain": np.zeros(2)}
    for _ in range(repeats):
        calibration = np.abs(generator.normal(size=80)) * scale
        test = np.abs(generator.normal(size=2)) * [1.0, 3.0]
        flagged["mondrian"] += mondrian_p_values(calibration, calibration_groups, test, ["a", "b"]) < epsilon
        flagged["plain"] += p_values(calibration, test) < epsilon
    for count in flagged["mondrian"]:
        assert stats.binomtest(int(count), repeats, epsilon, alternative="greater").pvalue > 0.001
    assert stats.binomtest(int(flagged["plain"][1]), repeats, epsilon, alternative="greater").pvalue < 1e-9


def test_small_groups_cannot_flag_at_a_small_epsilon():
    assert smallest_epsilon_by_group([1, 1, 1, 2]) == {"1": smallest_epsilon(3), "2": smallest_epsilon(1)}


def test_a_group_without_calibration_points_is_refused():
    with pytest.raises(ScoreError, match="group c has no calibration points"):
        mondrian_p_values([1.0, 2.0], ["a", "b"], [1.0], ["c"])


def test_each_score_needs_a_label():
    with pytest.raises(ScoreError, match="calibration_groups must hold one label"):
        mondrian_p_values([1.0, 2.0], ["a"], [1.0], ["a"])
    with pytest.raises(ScoreError, match="test_groups must hold one label"):
        mondrian_p_values([1.0], ["a"], [1.0], ["a", "a"])


def test_the_worst_treated_group_comes_first_beside_its_own_bound():
    """Group b is noisier: one threshold flags it far above epsilon, its own within the exact 99.9 % band around J/(k+1)."""
    generator, epsilon, each = np.random.default_rng(3), 0.1, 4_000
    flagged, pooled = 0, []
    for _ in range(40):
        spread = np.repeat([1.0, 3.0], 199)
        groups, asked = np.repeat(["a", "b"], 199), np.repeat(["a", "b"], each // 40)
        calibration = generator.normal(size=398) * spread
        test = generator.normal(size=asked.size) * np.where(asked == "a", 1.0, 3.0)
        rates = rates_by_group(
            p_values(calibration, test), asked, epsilon, mondrian_p_values(calibration, groups, test, asked)
        )
        assert [one.group for one in rates] == ["b", "a"]
        assert rates[0].ratio == pytest.approx(
            rates[0].pooled / np.mean(p_values(calibration, test) < epsilon)
        )
        flagged += round(rates[0].within * rates[0].points)
        pooled.append(rates[0].pooled)
    # 40 calibration sets of 199, 100 points each: sums of beta-binomials, bounded by their normal law.
    j = flagging_rank(199, epsilon)
    law = stats.betabinom(each // 40, j, 200 - j)
    assert abs(flagged - 40 * law.mean()) < 3.3 * np.sqrt(40) * law.std()
    assert np.mean(pooled) > 1.5 * epsilon
    assert "One threshold for all flags" in reading(rates, epsilon)
    assert "the bound of 0.1 holds in each" in reading(rates, epsilon)


def test_a_group_with_one_member_and_nothing_flagged_have_rates_too():
    rates = rates_by_group([0.5, 0.9, 0.02], ["a", "a", "b"], 0.05)
    assert [(one.group, one.points, one.pooled, one.within) for one in rates] == [
        ("b", 1, 1.0, None),
        ("a", 2, 0.0, None),
    ]
    assert [one.ratio for one in rates_by_group([0.5, 0.9], ["a", "b"], 0.05)] == [1.0, 1.0]
    with pytest.raises(ScoreError, match="one label per score"):
        rates_by_group([0.5], ["a", "b"], 0.05)
