"""Verdicts from stored score vectors: every number computed a second way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idecode_core.calibration import Calibration
from idecode_core.errors import SettingError
from idecode_core.verdict import (
    Verdict,
    comparison,
    judge,
    meaning,
    p_by_n,
    places,
    sentence,
    smoothing_generator,
)

GENERATOR = np.random.default_rng(7)
CALIBRATION = Calibration(GENERATOR.exponential(size=(99, 6)))
VECTORS = GENERATOR.exponential(size=(40, 6)) * np.linspace(0.2, 4, 40)[:, None]


def counted_p(vector: np.ndarray, n: int) -> float:
    """Eq. 5 by counting."""
    total = sum(vector[:n])
    return (1 + sum(sum(row[:n]) >= total for row in CALIBRATION.score_vectors)) / (1 + 99)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_a_verdict_is_the_rank_of_the_first_n_scores(n: int) -> None:
    for verdict, vector in zip(judge(CALIBRATION, VECTORS, n=n, epsilon=0.1), VECTORS, strict=True):
        assert verdict.p_value == pytest.approx(counted_p(vector, n))
        assert verdict.is_ood == (counted_p(vector, n) < 0.1)
        assert verdict.is_ood == (verdict.score > verdict.threshold)


def test_each_point_is_judged_alone_unless_discoveries_are_controlled() -> None:
    alone = [judge(CALIBRATION, vector[None], n=6, epsilon=0.1)[0] for vector in VECTORS]
    assert judge(CALIBRATION, VECTORS, n=6, epsilon=0.1) == alone


def test_false_discovery_control_flags_the_longest_run_below_the_line() -> None:
    q, p = 0.2, np.array([counted_p(vector, 6) for vector in VECTORS])
    ordered = np.sort(p)
    last = max((i for i in range(40) if ordered[i] <= q * (i + 1) / 40), default=-1)
    expected = p <= ordered[last] if last >= 0 else np.zeros(40, bool)
    found = judge(CALIBRATION, VECTORS, n=6, epsilon=q, false_discovery_control=True)
    assert [verdict.is_ood for verdict in found] == list(expected)
    assert 0 < sum(expected) < 40


def test_smoothed_p_values_depend_on_content_and_seed_only_and_never_exceed_the_others() -> None:
    plain = judge(CALIBRATION, VECTORS, n=6, epsilon=0.1)
    hashes = [f"{i:032x}" for i in range(40)]
    smoothed = judge(
        CALIBRATION, VECTORS, n=6, epsilon=0.1, smoothed_by=[smoothing_generator(h, 3) for h in hashes]
    )
    last = judge(
        CALIBRATION, VECTORS[-1:], n=6, epsilon=0.1, smoothed_by=[smoothing_generator(hashes[-1], 3)]
    )
    assert last[0] == smoothed[-1]
    assert all(s.p_value <= p.p_value for s, p in zip(smoothed, plain, strict=True))


def test_more_draws_than_stored_are_refused() -> None:
    with pytest.raises(SettingError, match="n=7"):
        judge(CALIBRATION, VECTORS, n=7, epsilon=0.1)


def test_p_by_n_is_the_p_value_of_each_prefix() -> None:
    assert p_by_n(CALIBRATION, VECTORS[30]) == pytest.approx([counted_p(VECTORS[30], n) for n in range(1, 7)])


def test_places_are_shares_of_all_single_calibration_scores() -> None:
    expected = [np.mean(CALIBRATION.score_vectors < score) for score in VECTORS[5]]
    assert places(CALIBRATION, VECTORS[5]) == pytest.approx(expected)


def verdict(rank: int, k: int = 1000, epsilon: float = 0.05, batch: int = 1) -> Verdict:
    p = (rank + 1) / (k + 1)
    return Verdict(1.0, rank, k, p, epsilon, p < epsilon, 0.5, batch)


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        (
            3,
            "Flagged: only 3 of 1,000 calibration images were at least this strange (p = 0.004 < epsilon = 0.05).",
        ),
        (
            1,
            "Flagged: only 1 of 1,000 calibration images was at least this strange (p = 0.002 < epsilon = 0.05).",
        ),
        (
            0,
            "Flagged: none of the 1,000 calibration images was this strange (p = 0.000999 < epsilon = 0.05).",
        ),
        (
            412,
            "Not flagged: 412 of 1,000 calibration images were at least this strange (p = 0.413 ≥ epsilon = 0.05).",
        ),
        (
            1000,
            "Not flagged: all 1,000 calibration images were at least this strange (p = 1 ≥ epsilon = 0.05).",
        ),
    ],
)
def test_the_verdict_is_a_sentence(rank: int, expected: str) -> None:
    assert sentence(verdict(rank)) == expected


@given(st.integers(0, 1000), st.sampled_from([0.001, 0.01, 0.05, 0.0505, 0.3]))
def test_the_numbers_of_the_sentence_never_contradict_its_sign(rank: int, epsilon: float) -> None:
    text = comparison((rank + 1) / 1001, epsilon)
    left, sign, right = text.removeprefix("p = ").replace("epsilon = ", "").split()
    assert (float(left) < float(right)) == (sign == "<")


def test_an_epsilon_that_can_never_flag_says_so() -> None:
    means, _ = meaning(verdict(0, k=75, epsilon=0.01))
    assert "nothing can ever be flagged" in means
    assert "0.0132" in means


def test_a_flag_is_never_called_a_probability_of_belonging() -> None:
    _, does_not = meaning(verdict(3))
    assert "belongs with probability" in does_not
