"""A verdict in words: the sentence, its numbers, what it means and what it does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idecode_core.conformal.judge import Verdict
from idecode_core.verdict import comparison, meaning, sentence


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


def test_files_judged_together_are_promised_few_false_discoveries_and_nothing_about_those_that_belong() -> (
    None
):
    for rank in (0, 3, 412):
        alone, _ = meaning(verdict(rank))
        together, does_not = meaning(verdict(rank, batch=8))
        assert "false discoveries" in together
        assert "false discoveries" not in alone
        assert "at most 5 % of them are flagged" not in together + does_not


def test_a_file_that_only_fails_together_says_what_it_would_be_alone() -> None:
    missed = Verdict(1.0, 40, 1000, 41 / 1001, 0.05, False, 9.0, 8)
    assert "judged alone, p = 0.041 < epsilon = 0.05" in meaning(missed)[0]
