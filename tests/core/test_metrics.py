"""Metrics, each computed a second way by counting pairs or trying every threshold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from idecode_core.errors import ScoreError, SettingError
from idecode_core.quality.metrics import (
    auroc,
    auroc_interval,
    false_detection_rate,
    fpr_at_tpr,
    roc,
    tnr_at_tpr,
)

tied = arrays(np.float64, st.integers(1, 30), elements=st.integers(0, 6).map(float))


@given(tied, tied)
def test_auroc_is_the_share_of_pairs_in_the_right_order(known, strange):
    pairs = np.sign(strange[:, None] - known[None, :])
    assert auroc(known, strange) == pytest.approx(np.mean((pairs + 1) / 2))


@given(tied, tied)
def test_every_point_of_the_roc_curve_is_a_threshold_on_scores(known, strange):
    curve = roc(known, strange)
    for fpr, tpr, threshold in zip(
        curve.false_positive_rate, curve.true_positive_rate, curve.thresholds, strict=True
    ):
        assert tpr == pytest.approx(np.mean(known <= threshold))
        assert fpr == pytest.approx(np.mean(strange <= threshold))
    assert curve.thresholds[0] == -np.inf
    assert np.trapezoid(curve.true_positive_rate, curve.false_positive_rate) == pytest.approx(
        auroc(known, strange)
    )


@given(tied, tied, st.sampled_from([0.1, 0.5, 0.7, 0.9, 0.95, 1.0]))
def test_tnr_at_tpr_is_the_best_of_all_thresholds_that_keep_enough(known, strange, tpr):
    allowed = [t for t in np.r_[known, strange] if np.mean(known <= t) >= tpr]
    assert tnr_at_tpr(known, strange, tpr) == max(np.mean(strange > t) for t in allowed)


def test_ninety_percent_of_ten_points_are_nine_points():
    assert tnr_at_tpr(range(10), [8.0, 8.5]) == 0.5


@given(tied, tied, st.sampled_from([0.5, 0.9, 0.95, 1.0]))
def test_what_is_not_detected_is_let_through(known, strange, tpr):
    assert fpr_at_tpr(known, strange, tpr) == pytest.approx(1 - tnr_at_tpr(known, strange, tpr))


def test_the_interval_of_the_auroc_is_that_of_a_bootstrap():
    generator = np.random.default_rng(0)
    known, strange = generator.normal(size=300), generator.normal(1.2, 1.4, size=200)
    again = [auroc(generator.choice(known, 300), generator.choice(strange, 200)) for _ in range(2000)]
    # A quantile of 2,000 resamples has an error of about 0.001 here; logit and percentile intervals differ as little.
    assert auroc_interval([known], [strange]) == pytest.approx(np.quantile(again, [0.025, 0.975]), abs=0.005)


def test_the_interval_holds_the_true_auroc_as_often_as_it_says():
    generator = np.random.default_rng(1)
    truth = stats.norm.cdf(1 / np.sqrt(2))
    held = [
        low <= truth <= high
        for low, high in (
            auroc_interval([generator.normal(size=60)], [generator.normal(1, size=40)]) for _ in range(1000)
        )
    ]
    assert np.mean(held) == pytest.approx(0.95, abs=5 * np.sqrt(0.95 * 0.05 / 1000))


@given(tied, tied)
def test_the_interval_has_the_auroc_inside_and_stays_between_0_and_1(known, strange):
    low, high = auroc_interval([known], [strange])
    assert 0 <= low <= auroc(known, strange) + 1e-12
    assert auroc(known, strange) - 1e-12 <= high <= 1


def test_sets_that_are_apart_have_the_interval_of_independent_pairs():
    # Clopper-Pearson for 10 successes of 10.
    low, high = auroc_interval([np.arange(10)], [np.arange(100, 130)])
    assert (low, high) == (pytest.approx(stats.beta.ppf(0.025, 10, 1)), 1.0)
    assert auroc_interval([np.arange(100, 130)], [np.arange(10)]) == pytest.approx((1 - high, 1 - low))


def test_runs_of_the_same_points_share_one_interval():
    generator = np.random.default_rng(2)
    known, strange = generator.normal(size=50), generator.normal(1, size=50)
    once = auroc_interval([known], [strange])
    assert auroc_interval([known] * 3, [strange] * 3) == pytest.approx(once)
    assert auroc_interval([known] * 3, [strange] * 3, level=0.8)[0] > once[0]


def test_the_false_detection_rate_is_strict():
    assert false_detection_rate([0.05, 0.0499, 0.2, 0.01], 0.05) == 0.5


def test_bad_input_has_one_clear_sentence():
    with pytest.raises(ScoreError, match="id_scores are empty"):
        auroc([], [1.0])
    with pytest.raises(ScoreError, match="ood_scores must be finite"):
        roc([1.0], [np.nan])
    with pytest.raises(SettingError, match="tpr"):
        tnr_at_tpr([1.0], [1.0], tpr=0.0)
    with pytest.raises(SettingError, match="epsilon"):
        false_detection_rate([1.0], 1.0)
