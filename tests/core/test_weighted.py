"""A shifted source: weighted p-values keep their bound, and say what it costs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from idecode_core.conformal import p_values
from idecode_core.conformal.multiple import benjamini_hochberg, false_discovery_proportion
from idecode_core.conformal.weighted import (
    check_effective,
    density_ratio,
    effective_sample_size,
    under_shift,
    weighted_p_values,
    weighted_selection,
    what_it_costs,
)
from idecode_core.errors import ScoreError, SettingError

EPSILON = 0.1


def shifted(generator: np.random.Generator, k: int, m: int):
    """Scores grow with x, and large x are commoner in the new source: w(x) = e^x / e^{1/2} exactly."""
    x, new = generator.normal(size=k), generator.normal(1.0, size=m)
    return x + generator.normal(size=k), np.exp(x), new + generator.normal(size=m), np.exp(new), x, new


def test_with_the_true_weights_the_rate_is_kept_where_the_plain_one_breaks() -> None:
    """20,000 worlds of 100 calibration points and one new point; at most epsilon, by the exact binomial at 0.0005."""
    generator, trials, flagged, plain = np.random.default_rng(0), 20_000, 0, 0
    for _ in range(trials):
        scores, weights, new, own, *_ = shifted(generator, 100, 1)
        flagged += weighted_p_values(scores, weights, new, own)[0] < EPSILON
        plain += p_values(scores, new)[0] < EPSILON
    assert flagged <= stats.binom.ppf(0.9995, trials, EPSILON)
    assert plain > 2 * stats.binom.ppf(0.9995, trials, EPSILON)


def test_weights_from_a_classifier_come_close() -> None:
    generator, rates = np.random.default_rng(1), []
    for _ in range(200):
        scores, _, new, _, x, at = shifted(generator, 500, 200)
        _, _, _, _, _, batch = shifted(generator, 1, 300)
        weights, own = density_ratio(x[:, None], batch[:, None], at[:, None])
        rates.append(np.mean(weighted_p_values(scores, weights, new, own) < EPSILON))
    assert np.mean(rates) <= EPSILON * 1.15
    assert np.corrcoef(np.log(own), at)[0, 1] > 0.999
    slope = np.polyfit(at, np.log(own), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.35)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_p_value_is_the_weight_of_what_is_as_strange(seed, ties):
    generator = np.random.default_rng(seed)
    k, m = generator.integers(1, 20, 2)
    scores, new = generator.normal(size=k), generator.normal(size=m)
    if ties:
        scores, new = scores.round(), new.round()
    weights, own = generator.random(k) + 0.01, generator.random(m) + 0.01
    expected = [
        (sum(w for s, w in zip(scores, weights, strict=True) if s >= t) + u) / (weights.sum() + u)
        for t, u in zip(new, own, strict=True)
    ]
    np.testing.assert_allclose(weighted_p_values(scores, weights, new, own), expected, rtol=1e-12)
    np.testing.assert_allclose(
        weighted_p_values(scores, np.ones(k), new, np.ones(m)), p_values(scores, new), rtol=1e-12
    )


def test_weighted_selection_keeps_the_false_discovery_rate_and_finds_something() -> None:
    """Mean over 600 worlds, minus 3.3 standard errors."""
    generator, q, m = np.random.default_rng(2), 0.2, 40
    is_ood = np.arange(m) < 12
    proportions, found = [], 0
    for _ in range(600):
        scores, weights, new, own, *_ = shifted(generator, 300, m)
        flagged = weighted_selection(scores, weights, new + 6.0 * is_ood, own, q)
        proportions.append(false_discovery_proportion(flagged, is_ood))
        found += int(flagged[is_ood].sum())
    assert np.mean(proportions) - 3.3 * np.std(proportions) / np.sqrt(600) <= q
    assert found > 0.3 * 600 * 12


def test_with_equal_weights_the_selection_is_not_larger_than_benjamini_hochbergs() -> None:
    generator = np.random.default_rng(3)
    for _ in range(50):
        scores, new = generator.normal(size=80), generator.normal(size=10) + 4.0 * (np.arange(10) < 4)
        chosen = weighted_selection(scores, np.ones(80), new, np.ones(10), 0.2)
        assert not (chosen & ~benjamini_hochberg(p_values(scores, new), 0.2)).any()


def test_the_effective_sample_size_refuses_a_source_that_is_too_far() -> None:
    assert effective_sample_size(np.r_[1.0, np.zeros(99)]) == 1.0
    with pytest.raises(SettingError, match=r"100 of them count as 1\.0"):
        check_effective(np.r_[1.0, np.zeros(99)], 0.05)
    assert check_effective(np.ones(30), 0.05) == pytest.approx(30)
    assert "30 calibration points count as 30" in what_it_costs(np.ones(30), 0.05)


def test_kinds_that_were_never_seen_are_not_made_up_for_by_weights() -> None:
    generator = np.random.default_rng(5)
    with pytest.raises(SettingError, match="kinds that were never seen"):
        density_ratio(generator.normal(size=(300, 1)), generator.normal(30.0, size=(100, 1)))
    for seed in range(50):  # a shift by one standard deviation is covered
        generator = np.random.default_rng(seed)
        density_ratio(generator.normal(size=(300, 1)), generator.normal(1.0, size=(100, 1)))


def test_bad_input_has_one_clear_sentence() -> None:
    with pytest.raises(ScoreError, match="nor all be 0"):
        weighted_p_values([1.0], [0.0], [1.0], [1.0])
    with pytest.raises(ScoreError, match="one weight per score"):
        weighted_p_values([1.0], [1.0, 2.0], [1.0], [1.0])
    with pytest.raises(ScoreError, match="finite"):
        weighted_p_values([1.0], [np.nan], [1.0], [1.0])
    with pytest.raises(ScoreError, match="expected 2 columns, got 1"):
        density_ratio([[1.0, 2.0]], [[1.0]])


def strangeness(generator: np.random.Generator, m: int, hard: float) -> np.ndarray:
    """Scores of a source with this share of hard points."""
    return np.where(generator.random(m) < hard, generator.gamma(6, 1, m), generator.gamma(2, 1, m))


def test_weights_from_scores_alone_keep_the_rate_where_hard_points_became_commoner() -> None:
    """Mean over 60 worlds: three in twenty hard points became ten; without weights it is three times epsilon."""
    generator, rates, caught = np.random.default_rng(3), [], []
    for _ in range(60):
        known, batch = strangeness(generator, 1000, 0.15), strangeness(generator, 400, 0.5)
        found = under_shift(known, batch, generator.gamma(14, 1, 200), epsilon=0.05, generator=generator)
        rates.append([one.rate for one in found.rates[0]])
        caught.append([one.rate for one in found.rates[1]])
        assert found.rates[0][0].total == 200  # the half that taught nothing
        assert 100 < found.effective < 1000
    plain, weighted = np.mean(rates, axis=0)
    assert plain > 0.12
    assert weighted <= 0.05
    assert np.mean(caught, axis=0)[1] < np.mean(caught, axis=0)[0]  # the price


def test_where_nothing_has_shifted_weights_change_little() -> None:
    generator, rates = np.random.default_rng(4), []
    for _ in range(60):
        known, batch = strangeness(generator, 1000, 0.2), strangeness(generator, 400, 0.2)
        found = under_shift(known, batch, epsilon=0.05, generator=generator)
        assert found.effective > 900
        rates.append(found.rates[0][1].rate)
    assert np.mean(rates) == pytest.approx(0.05, abs=0.015)


def test_a_batch_that_is_small_or_far_is_refused_in_a_sentence() -> None:
    generator = np.random.default_rng(5)
    known = generator.normal(size=500)
    with pytest.raises(SettingError, match="at least 40 inputs, got 39"):
        under_shift(known, generator.normal(size=39), epsilon=0.05, generator=generator)
    with pytest.raises(SettingError, match="too far from the calibration points"):
        under_shift(known, generator.normal(9, size=400), epsilon=0.05, generator=generator)
