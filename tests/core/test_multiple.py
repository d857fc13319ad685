"""Many inputs: the false *discovery* rate is controlled, and a plain threshold does not do it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from idecode_core.conformal import p_values
from idecode_core.conformal.multiple import benjamini_hochberg, false_discovery_proportion, storey
from idecode_core.errors import ScoreError, SettingError

lattice_p = arrays(np.float64, st.integers(1, 40), elements=st.integers(1, 100).map(lambda i: i / 100))


@given(lattice_p, st.floats(0.01, 0.99))
def test_benjamini_hochberg_equals_the_step_up_rule(p, q):
    m = len(p)
    needed = np.sort(p) * m / np.arange(1, m + 1)
    assume(np.all(np.abs(needed - q) > 1e-9))  # exact equality is a matter of rounding
    passing = np.sort(p)[needed <= q]
    expected = p <= passing.max(initial=0.0)
    assert np.array_equal(benjamini_hochberg(p, q), expected)


@example(np.array([0.01, 0.1, 0.5, 0.5, 0.5]), 0.4)
@given(lattice_p, st.floats(0.01, 0.99))
def test_storey_equals_the_step_up_rule_with_the_estimated_share(p, q):
    level = 50 / 100  # k = 99, and 0.5 is on the lattice
    share = (1 + sum(p >= level)) / (len(p) * (1 - level))
    # on the line counts as below it, however the products are rounded
    passing = [t for t in p if t < level and t * share * len(p) <= q * sum(p <= t) + 1e-12]
    assert np.array_equal(storey(p, q, k=99), p <= max(passing, default=0.0))


@given(st.integers(1, 40), st.integers(2, 400), st.integers(1, 99), st.data())
def test_a_point_exactly_on_the_line_is_flagged_as_integers_say(m, k, hundredths, data):
    """rank_(i) m 100 <= hundredths i (k+1), in integers; p-values and q come as floats."""
    ranks = sorted(data.draw(st.lists(st.integers(1, k + 1), min_size=m, max_size=m)))
    passing = [r for i, r in enumerate(ranks, 1) if r * m * 100 <= hundredths * i * (k + 1)]
    flagged = benjamini_hochberg(np.array(ranks) / (k + 1), hundredths / 100)
    assert flagged.tolist() == [r <= max(passing, default=0) for r in ranks]


def test_ties_on_the_line_are_not_lost_to_rounding():
    assert benjamini_hochberg([3 / 650] * 3 + [1.0] * 62, 0.1).sum() == 3
    assert not benjamini_hochberg([math.nextafter(3 / 650, 1)] * 3 + [1.0] * 62, 0.1).any()


@given(lattice_p, st.floats(0.05, 0.95), st.integers(1, 60))
def test_storeys_level_is_rounded_up_to_the_lattice(p, level, k):
    """With k calibration points L is the next multiple of 1/(k+1), so p-values between L and its rounding count as small."""
    step = next(i for i in range(1, k + 2) if Fraction(i, k + 1) >= Fraction(level))
    assume(step < k + 1)
    ranks = np.ceil(p * (k + 1)).astype(int)
    q = Fraction(1, 5)
    bound = Fraction((1 + int((ranks >= step).sum())) * (k + 1), k + 1 - step)
    passing = [
        int(r) for r in ranks if r < step and Fraction(int(r), k + 1) * bound <= q * int((ranks <= r).sum())
    ]
    assert storey(ranks / (k + 1), 0.2, k=k, level=level).tolist() == [
        r <= max(passing, default=0) for r in ranks
    ]


def test_storeys_share_and_count_are_both_those_of_the_lattice():
    """k = 9 rounds 0.55 up to 0.6, so pi m is 2.5 where all are small, not 1 / 0.45; 0.57, smoothed, is small."""
    assert storey([0.1], 0.24, k=9, level=0.55).tolist() == [False]
    assert storey([0.1, 0.57], 0.25, k=9, level=0.55).tolist() == [True, False]


def test_storey_never_flags_a_point_that_looks_ordinary():
    p = np.array([0.001] * 50 + [0.9])
    assert storey(p, 0.1, k=999).tolist() == [True] * 50 + [False]


@pytest.mark.parametrize("share_ood", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("k", [60, 500])
def test_the_false_discovery_rate_is_at_most_q(share_ood, k):
    # Mean over repeats, each with its own calibration set, minus 3.1 standard errors (error level 0.001).
    generator, m, q, repeats = np.random.default_rng(0), 50, 0.2, 1_500
    is_ood = np.arange(m) < share_ood * m
    proportions = np.empty((repeats, 2))
    for repeat in range(repeats):
        p = p_values(generator.normal(size=k), generator.normal(size=m) + 3.0 * is_ood)
        for column, flagged in enumerate((benjamini_hochberg(p, q), storey(p, q, k=k))):
            proportions[repeat, column] = false_discovery_proportion(flagged, is_ood)
    margin = 3.1 * proportions.std(axis=0) / np.sqrt(repeats)
    assert np.all(proportions.mean(axis=0) - margin <= q)


def test_a_plain_threshold_keeps_the_false_detection_rate_but_not_the_false_discovery_rate():
    generator, m, k, q = np.random.default_rng(1), 100, 1_000, 0.1
    is_ood = np.arange(m) < 5
    plain, bh, detections = [], [], []
    for _ in range(300):
        p = p_values(generator.normal(size=k), generator.normal(size=m) + 5.0 * is_ood)
        plain.append(false_discovery_proportion(p < 0.05, is_ood))
        bh.append(false_discovery_proportion(benjamini_hochberg(p, q), is_ood))
        detections.append(np.mean(p[~is_ood] < 0.05))
    assert np.mean(detections) < 0.055
    assert np.mean(plain) > 0.4
    assert np.mean(bh) < q


def test_storey_finds_more_when_much_is_strange():
    generator, m, k = np.random.default_rng(2), 100, 500
    is_ood = np.arange(m) < 70
    p = p_values(generator.normal(size=k), generator.normal(size=m) + 2.0 * is_ood)
    assert storey(p, 0.1, k=k).sum() > benjamini_hochberg(p, 0.1).sum()


def test_the_proportion_counts_false_flags_among_flags():
    assert false_discovery_proportion([True, True, True, False], [True, False, False, True]) == pytest.approx(
        2 / 3
    )
    assert false_discovery_proportion([False, False], [True, False]) == 0.0


def test_one_discovery_needs_enough_calibration_points():
    m, q = 100, 0.1
    enough = m / q - 1
    for k, found in ((enough, 1), (enough - 1, 0)):
        p = np.r_[1 / (k + 1), np.ones(m - 1)]
        assert benjamini_hochberg(p, q).sum() == found


def test_bad_input_has_one_clear_sentence():
    with pytest.raises(SettingError, match="q must lie"):
        benjamini_hochberg([0.5], 1.0)
    with pytest.raises(SettingError, match="level"):
        storey([0.5], 0.1, k=9, level=1.0)
    with pytest.raises(ScoreError, match="at most 1"):
        benjamini_hochberg([3.0], 0.1)
    with pytest.raises(ScoreError, match="one shape"):
        false_discovery_proportion([True], [True, False])


def test_smoothed_p_values_serve_as_well():
    # Independent uniforms are the textbook case; scipy's own adjusted values give the same flags.
    p = np.random.default_rng(3).random(200) ** 3
    assert np.array_equal(benjamini_hochberg(p, 0.1), stats.false_discovery_control(p) <= 0.1)
