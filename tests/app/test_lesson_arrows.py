"""The small worlds of 'How it works': every number is computed a second time, as one would by hand."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessons import arrows

tenths = st.integers(0, 3599).map(lambda tenth: tenth / 10)


@given(lean=st.integers(-1800, 1800).map(lambda tenth: tenth / 10), turn=tenths)
def test_the_error_is_the_shortest_way_on_the_clock_from_the_turn_to_the_nearest_hour(lean, turn):
    tenths_of_gx = round(10 * lean) + round(10 * turn)
    hours = [300 * hour for hour in range(-12, 37)]
    nearest = min(abs(tenths_of_gx - hour) for hour in hours)
    readings = [hour for hour in hours if abs(tenths_of_gx - hour) == nearest]  # two at half past
    gaps = [
        min(abs(reading - round(10 * turn) + 3600 * lap) for lap in (-2, -1, 0, 1, 2)) for reading in readings
    ]
    assert round(10 * arrows.base_scores([lean], [[turn]])[0, 0]) in gaps


def test_an_upright_arrow_is_misread_by_half_an_hour_at_most():
    turns = np.arange(3600)[np.newaxis] / 10
    assert arrows.base_scores([0.0], turns).max() == 15.0


def test_algorithm_1_can_be_followed_by_hand():
    friends = arrows.Friends(np.array([2.0, -9.0, 20.0]), np.array([[10.0, 50.0], [100.0, 3.0], [0.0, 40.0]]))
    # 12 -> 0 and 52 -> 60; 91 -> 90 and -6 -> 0; 20 -> 30 and 60 -> 60
    by_hand = [[10.0, 10.0], [10.0, 3.0], [30.0, 20.0]]
    assert friends.calibration.score_vectors.tolist() == by_hand
    working = arrows.algorithm_1(friends, lean=14.0, n=2, generator=np.random.default_rng(0))
    readings = [30 * round(angle / 30) % 360 for angle in working.gx]
    errors = [abs(reading - g) for reading, g in zip(readings, working.g, strict=True)]
    assert working.readings.tolist() == readings
    assert working.score_vector == pytest.approx([min(error, 360 - error) for error in errors])
    assert working.rank == sum(sum(row) >= working.score for row in by_hand)
    assert working.p_value == (working.rank + 1) / 4


def test_draws_for_a_smaller_n_are_the_first_of_those_for_a_larger_one():
    friends = arrows.draw_friends(generator=np.random.default_rng(1))
    five, twenty = (
        arrows.algorithm_1(friends, 14.0, n, generator=np.random.default_rng(2)).g for n in (5, 20)
    )
    assert five.tolist() == twenty[:5].tolist()


def test_sums_that_are_equal_on_paper_are_equal_here():
    vectors = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.6, 0.0, 0.0]])
    assert len(set(arrows.total(vectors).tolist())) == 1


def test_the_game_flags_at_most_epsilon_and_every_place_comes_up():
    """20,000 rounds: the share below epsilon is above it by more than 4 standard errors once in 30,000 seeds."""
    p = arrows.shuffled_p_values(19, 20_000, generator=np.random.default_rng(3))
    for epsilon in (0.1, 0.2, 0.5):
        assert np.mean(p < epsilon) <= epsilon + 4 * np.sqrt(epsilon * (1 - epsilon) / p.size)
    assert set(np.rint(p * 20).astype(int)) == set(range(1, 21))


def test_examples_in_docstrings_show_what_really_happens():
    results = doctest.testmod(arrows)
    assert results.attempted > 0
    assert results.failed == 0
