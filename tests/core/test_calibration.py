"""Aggregates F, and the immutable calibration."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from idecode_core.conformal import p_values
from idecode_core.conformal.calibration import AGGREGATES, LOG_FLOOR, Calibration, aggregate_scores
from idecode_core.conformal.judge import judge
from idecode_core.errors import ScoreError, SettingError

vectors = arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 25)), elements=st.floats(0, 1e6))


@given(vectors)
def test_aggregates_equal_their_plain_python_meaning(score_vectors):
    by_hand = {
        "sum": [math.fsum(row) for row in score_vectors],
        "mean": [math.fsum(row) / len(row) for row in score_vectors],
        "max": [max(row) for row in score_vectors],
        "sum_of_logs": [math.fsum(math.log(max(value, LOG_FLOOR)) for value in row) for row in score_vectors],
    }
    assert set(AGGREGATES) == set(by_hand)
    for name, expected in by_hand.items():
        np.testing.assert_allclose(aggregate_scores(score_vectors, name), expected, rtol=1e-12, atol=1e-9)


@given(vectors, st.sampled_from(sorted(AGGREGATES)), st.randoms(use_true_random=False))
def test_a_batch_is_only_a_batch_to_the_last_bit(score_vectors, name, random):
    scores = aggregate_scores(score_vectors, name)
    order = list(range(len(score_vectors)))
    random.shuffle(order)
    assert np.array_equal(aggregate_scores(score_vectors[order], name), scores[order])
    assert np.array_equal(aggregate_scores(np.asfortranarray(score_vectors), name), scores)
    alone = [aggregate_scores(row[None], name)[0] for row in score_vectors]
    assert np.array_equal(alone, scores)


def test_the_default_aggregate_is_the_sum():
    assert aggregate_scores([[1.0, 2.0]]).tolist() == [3.0]


def test_zero_scores_stay_finite_in_the_sum_of_logs():
    assert aggregate_scores([[0.0, 1.0]], "sum_of_logs")[0] == math.log(LOG_FLOOR)


def test_negative_scores_have_no_logarithm():
    with pytest.raises(ScoreError, match=r"not negative, got -0\.5"):
        aggregate_scores([[1.0, -0.5]], "sum_of_logs")


def test_any_function_of_a_row_can_aggregate():
    assert aggregate_scores([[1.0, 5.0, 2.0]], lambda v: np.median(v, axis=1)).tolist() == [2.0]


def test_aggregates_that_are_none_are_refused():
    with pytest.raises(SettingError, match="one of sum, mean, max, sum_of_logs"):
        aggregate_scores([[1.0]], "median")
    with pytest.raises(SettingError, match="a name or a function, got int"):
        aggregate_scores([[1.0]], 3)
    with pytest.raises(ScoreError, match="one score per point"):
        aggregate_scores(np.ones((4, 3)), lambda v: v.sum(axis=0))
    with pytest.raises(ScoreError, match="aggregated scores must be finite"):
        aggregate_scores([[1.0]], lambda v: v.sum(axis=1) * np.nan)


def test_every_n_uses_the_first_n_draws():
    generator = np.random.default_rng(0)
    stored, test = generator.random((30, 8)), generator.random((5, 8))
    calibration = Calibration(stored)
    assert (calibration.k, calibration.n_max, calibration.seed) == (30, 8, 0)
    for n in range(1, 9):
        expected = p_values([row[:n].max() for row in stored], [row[:n].max() for row in test])
        assert np.array_equal(judge(calibration, test, n=n, aggregate="max").p_values, expected)
        for epsilon in (0.03, 0.2, 0.5):
            above = test[:, :n].max(axis=1) > calibration.threshold(n, epsilon, "max")
            assert np.array_equal(above, expected < epsilon)


def test_the_calibration_cannot_be_changed():
    source = np.ones((3, 2))
    calibration = Calibration(source, seed=7)
    source[:] = 99.0
    assert calibration.score_vectors.max() == 1.0
    with pytest.raises(ValueError, match="read-only"):
        calibration.score_vectors[0, 0] = 2.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        calibration.seed = 8
    with pytest.raises(dataclasses.FrozenInstanceError):
        calibration.score_vectors = source


@given(vectors, st.sampled_from(sorted(AGGREGATES)))
def test_rounded_to_stored_scores_what_was_tied_stays_tied(score_vectors, name):
    stored = score_vectors.astype(np.float32)  # the same points, as a detector folder keeps them
    calibration = Calibration(score_vectors, seed=3)
    rounded = calibration.rounded(stored.dtype)
    scores = rounded.scores(calibration.n_max, name)
    assert np.array_equal(scores, aggregate_scores(stored, name))
    at_least = [int(np.count_nonzero(scores >= score)) for score in scores]  # each point is tied with itself
    assert (judge(rounded, stored, aggregate=name).p_values * (calibration.k + 1)).round().tolist() == [
        r + 1 for r in at_least
    ]
    assert rounded.seed == 3


def test_a_calibration_prints_as_one_line_without_its_scores():
    assert repr(Calibration(np.full((1_000, 20), 0.125), seed=7)) == "Calibration(k=1000, n_max=20, seed=7)"


def test_without_rounding_a_stored_point_would_fall_behind_itself():
    calibration = Calibration([[0.3], [0.1]])  # float32(0.3) is above 0.3
    stored = np.array([[0.3]], dtype=np.float32)
    assert judge(calibration, stored).p_values.tolist() == [1 / 3]
    assert judge(calibration.rounded(stored.dtype), stored).p_values.tolist() == [2 / 3]


def test_smoothed_p_values_come_with_generators():
    calibration = Calibration(np.ones((9, 1)))
    assert judge(calibration, [[1.0]]).p_values.tolist() == [1.0]
    smoothed = judge(calibration, np.ones((500, 1)), smoothed_by=np.random.default_rng(0).spawn(500)).p_values
    assert 0 < smoothed.min() < 0.05
    assert 0.95 < smoothed.max() <= 1


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((0, 2)), np.ones((2, 0)), [[np.nan]], [[np.inf, 1.0]]])
def test_score_vectors_that_are_none_are_refused(bad):
    with pytest.raises(ScoreError, match="calibration score_vectors"):
        Calibration(bad)
    with pytest.raises(ScoreError, match="score_vectors"):
        judge(Calibration(np.ones((3, 2))), bad)


def test_more_draws_than_were_calibrated_are_refused():
    calibration = Calibration(np.ones((3, 2)))
    for n in (0, 3):
        with pytest.raises(SettingError, match=f"between 1 and 2.*got {n}"):
            calibration.scores(n)
    with pytest.raises(SettingError, match="got 5"):
        judge(calibration, np.ones((1, 5)))
