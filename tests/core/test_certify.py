"""`certify`: a threshold with a meaning for anybody's scores, with scikit-learn's verbs and signs."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.utils.estimator_checks import check_estimator

import idecode_core
from idecode_core.conformal import ranking
from idecode_core.conformal.certify import Certified, certify
from idecode_core.errors import IdecodeError, NothingFlaggedWarning, WrongSignWarning

FEW = st.integers(-5, 5).map(float)  # ties are frequent
SOME = arrays(np.float64, st.integers(1, 40), elements=FEW)


@given(SOME, SOME, st.sampled_from(["strange", "normal"]))
@pytest.mark.filterwarnings("ignore")
def test_p_values_count_the_calibration_scores_that_are_at_least_as_strange(calibration, test, larger_is):
    certified = certify(calibration, larger_is)
    sign = 1 if larger_is == "strange" else -1
    counted = [(sum(sign * c >= sign * t for c in calibration) + 1) / (len(calibration) + 1) for t in test]
    np.testing.assert_array_equal(certified.p_values(test), counted)


@given(SOME, SOME, st.floats(0.01, 0.99), st.sampled_from(["strange", "normal"]))
@pytest.mark.filterwarnings("ignore")
def test_threshold_p_value_decision_and_prediction_say_the_same(calibration, test, epsilon, larger_is):
    certified = certify(calibration, larger_is, epsilon=epsilon)
    flagged = certified.p_values(test) < epsilon
    limit = certified.threshold(epsilon)
    np.testing.assert_array_equal(test > limit if larger_is == "strange" else test < limit, flagged)
    np.testing.assert_array_equal(certified.decision_function(test) < 0, flagged)
    np.testing.assert_array_equal(certified.predict(test), np.where(flagged, -1, 1))


def test_with_delta_nine_of_ten_calibration_sets_keep_the_rate():
    # Normal scores are uniform, so the true rate beyond a threshold t is 1 - t. Over 2,000 sets of 300, the share that
    # keeps the rate has a standard error below 0.007; the law allows 0.1 and a little less is used.
    generator = np.random.default_rng(0)
    limits = np.array([certify(generator.random(300)).threshold(0.05, delta=0.1) for _ in range(2_000)])
    broken = np.mean(1 - limits > 0.05)
    assert 0.05 < broken < 0.1 + 3 * 0.007
    plain = np.array([certify(generator.random(300)).threshold(0.05) for _ in range(2_000)])
    assert np.mean(1 - plain > 0.05) > 0.4  # without delta, half of them do not


def test_the_threshold_for_this_set_is_the_order_statistic_of_the_binomial_law():
    scores = np.random.default_rng(1).normal(size=500)
    largest = max(j for j in range(1, 500) if stats.beta.cdf(0.05, j, 501 - j) > 0.9)
    assert certify(scores).threshold(0.05, delta=0.1) == np.sort(scores)[-largest]


def test_columns_are_draws_and_are_added_up():
    vectors = np.random.default_rng(2).normal(size=(50, 3))
    certified, summed = certify(vectors), certify(vectors.sum(axis=1))
    np.testing.assert_array_equal(certified.p_values(vectors[:9]), summed.p_values(vectors[:9].sum(axis=1)))


def test_ranks_do_not_depend_on_the_blocks_that_are_looked_up_together(monkeypatch):
    generator = np.random.default_rng(3)
    calibration, test = generator.normal(size=200).round(1), generator.normal(size=100).round(1)
    whole = ranking.ranks(calibration, test)
    monkeypatch.setattr(ranking, "LOOKED_UP_TOGETHER", 7)
    np.testing.assert_array_equal(ranking.ranks(calibration, test), whole)


def test_a_wrong_sign_is_noticed_and_a_right_one_is_not():
    generator = np.random.default_rng(4)
    normal, strange = generator.normal(size=100), generator.normal(8, size=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certify(normal).p_values(strange)
        certify(-normal, "normal").p_values(-strange)
        certify(normal).p_values(generator.normal(size=1_000))  # from the same source
        certify(normal).p_values([-9.0])  # one point may lie anywhere
    with pytest.warns(WrongSignWarning, match="20 of 20 new scores lie below all 100.*larger_is='normal'"):
        certify(-normal).p_values(-strange)
    with pytest.warns(WrongSignWarning, match="lie above all 100.*larger_is='strange'"):
        certify(normal, "normal").predict(strange)


def test_too_few_scores_for_epsilon_say_how_many_are_needed():
    with pytest.warns(NothingFlaggedWarning, match="k of at least 20"):
        assert certify([1.0, 2.0, 3.0]).threshold(0.05) == np.inf
    with pytest.warns(NothingFlaggedWarning, match="k of at least 45"):
        assert certify(range(30), "normal").threshold(0.05, delta=0.1) == -np.inf


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([1.0, np.nan, 2.0], "1 of 3 are NaN or infinite"),
        ([], "empty"),
        (["a", "b"], "must be numbers"),
        ([[1.0], [2.0, 3.0]], "must be numbers"),
        (np.zeros((2, 2, 2)), "shape"),
        (5.0, "shape"),
        ([1j], "complex"),
    ],
)
def test_scores_that_cannot_be_ranked_are_refused_in_one_sentence(scores, words):
    with pytest.raises(IdecodeError, match=words):
        certify(scores)
    with pytest.raises(IdecodeError, match=words):
        certify([1.0, 2.0]).p_values(scores)


def test_an_unknown_sign_lists_both():
    with pytest.raises(IdecodeError, match="'strange' or 'normal', got 'good'"):
        certify([1.0], "good")


def test_certify_is_a_function_of_the_package_however_often_it_is_imported():
    from idecode_core import certify as first

    assert idecode_core.certify is first is certify


OURS = {
    "check_fit1d": "a plain list of scores is what most people have",
    "check_fit2d_predict1d": "a plain list is one column; three columns were calibrated, and the error says that",
    "check_dtype_object": "our words for what is no number",
    "check_estimators_empty_data_messages": "our words for no scores",
}
"""Checks of scikit-learn that do not apply, and why."""


@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_knows_it_as_an_outlier_detector():
    found = check_estimator(Certified(), on_fail=None, on_skip=None)
    assert {one["check_name"] for one in found if one["status"] == "failed"} == set(OURS)
    passed = {one["check_name"] for one in found if one["status"] == "passed"}
    assert {"check_outliers_train", "check_outliers_fit_predict", "check_estimators_nan_inf"} <= passed
