"""Metrics, each computed a second way by counting pairs or trying every threshold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from idecode_core.errors import ScoreError, SettingError
from idecode_core.evaluation.metrics import auroc, false_detection_rate, roc, tnr_at_tpr

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
