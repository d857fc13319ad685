"""A dirty calibration set: it is noticed, and taking out what does not belong keeps the bound."""

import numpy as np
import pytest
from scipy import stats

from idecode_core.conformal import flagging_rank, p_values
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.dirty import (
    contamination,
    label_trim,
    strangest,
    trimmed,
    trimmed_rate,
    what_it_promises,
)
from idecode_core.errors import ScoreError, SettingError

INSIDE, STRANGE, M, EPSILON, TRIALS = 120, 6, 20, 0.1, 20_000


def rate(strangers, taken_out, seed: int) -> tuple[int, float]:
    """False detections of one new point in each of many worlds: their number, and the mean power against strangers."""
    generator, flagged, power = np.random.default_rng(seed), 0, 0.0
    for _ in range(TRIALS):
        scores = np.r_[generator.normal(size=INSIDE), strangers(generator)]
        shown = strangest(scores, M)
        kept = label_trim(scores, M, shown[taken_out(shown)])
        p = p_values(scores[kept], [generator.normal(), 1.5])
        flagged += p[0] < EPSILON
        power += (p[1] < EPSILON) / TRIALS
    return flagged, power


def test_after_the_review_the_rate_is_exactly_that_of_a_clean_set_and_power_comes_back() -> None:
    """Without ties the rate is J/(k+1); the count lies in its exact 99.9 % band."""
    far = lambda generator: generator.normal(8.0, 0.5, size=STRANGE)  # noqa: E731
    flagged, power = rate(far, lambda shown: shown >= INSIDE, 1)
    band = stats.binom(TRIALS, flagging_rank(INSIDE, EPSILON) / (INSIDE + 1)).interval(0.999)
    assert band[0] <= flagged <= band[1]
    dirty, weaker = rate(far, lambda shown: shown < 0, 1)
    assert dirty < band[0]  # a dirty set flags too little of everything
    assert power > weaker + 0.1


def test_trimming_without_looking_breaks_the_bound() -> None:
    flagged, _ = rate(lambda generator: generator.normal(size=STRANGE), lambda shown: shown >= 0, 2)
    assert flagged / TRIALS > EPSILON * 2


def test_what_is_left_and_what_was_taken_by_mistake_cost_no_more_than_is_said() -> None:
    """Strangers that look most normal of all stay; then the two strangest that belong leave by mistake."""
    hidden = lambda generator: np.full(STRANGE, -9.0)  # noqa: E731
    flagged, _ = rate(hidden, lambda shown: shown >= INSIDE, 3)
    bound = trimmed_rate(INSIDE + STRANGE, EPSILON, left=STRANGE)
    assert flagged <= stats.binom.ppf(0.9995, TRIALS, bound)
    assert flagged >= stats.binom.ppf(0.0005, TRIALS, bound)  # this is the worst case
    flagged, _ = rate(
        lambda generator: generator.normal(8.0, size=STRANGE),
        lambda shown: (shown >= INSIDE) | (np.cumsum(shown < INSIDE) <= 2),
        4,
    )
    bound = trimmed_rate(INSIDE - 2, EPSILON, mistaken=2)
    assert bound == (flagging_rank(INSIDE - 2, EPSILON) + 2) / (INSIDE + 1)
    assert stats.binom.ppf(0.0005, TRIALS, bound) <= flagged <= stats.binom.ppf(0.9995, TRIALS, bound)


@pytest.mark.parametrize("k", [75, 400])
@pytest.mark.parametrize(
    "draw",
    [
        lambda g, k: g.normal(size=k),
        lambda g, k: g.exponential(size=k),
        lambda g, k: g.pareto(1.0, size=k),
        lambda g, k: g.lognormal(0, 2, size=k),
        lambda g, k: g.random(k),
        lambda g, k: g.beta(5, 0.5, size=k),
        lambda g, k: np.where(g.random(k) < 0.5, g.normal(size=k), g.normal(9, size=k)),
    ],
    ids=["normal", "exponential", "power law", "lognormal", "uniform", "crowded", "two halves"],
)
def test_a_clean_set_is_seldom_suspected_whatever_its_tail(draw, k: int) -> None:
    generator = np.random.default_rng(5)
    suspected = sum(contamination(draw(generator, k)).suspected for _ in range(400))
    assert suspected <= stats.binom.ppf(0.999, 400, 0.01)


def test_a_dirty_set_is_suspected_with_the_number_that_lies_beyond() -> None:
    generator = np.random.default_rng(6)
    found = [
        contamination(np.r_[generator.normal(size=980), generator.normal(9.0, size=20)]) for _ in range(50)
    ]
    assert sum(one.suspected for one in found) >= 48
    assert np.median([one.beyond for one in found]) == 20
    assert "20 of 1,000 points lie beyond a gap" in found[0].reading()


def test_ties_everywhere_and_few_points_say_nothing() -> None:
    for scores in ([1.0] * 200, np.repeat([0.0, 1.0], 100), [0.0] * 180 + [1.0] * 20, range(20)):
        found = contamination(scores)
        assert not found.suspected
        assert "cannot rule it out" in found.reading()


def test_the_strangest_come_first_and_equal_ones_in_their_order() -> None:
    assert strangest([2.0, 5.0, 5.0, 1.0], 3).tolist() == [1, 2, 0]


def test_a_calibration_keeps_the_vectors_that_stay_in_their_order() -> None:
    calibration = Calibration([[1.0, 0.0], [0.0, 9.0], [3.0, 1.0], [2.0, 2.0]], seed=7)
    clean = trimmed(calibration, 2, [1], n=2)
    assert clean.score_vectors.tolist() == [[1.0, 0.0], [3.0, 1.0], [2.0, 2.0]]
    assert clean.seed == 7
    assert "each that does adds" in what_it_promises(clean.k, 1, 2, epsilon=0.5)


def test_bad_input_has_one_clear_sentence() -> None:
    with pytest.raises(SettingError, match="Between 1 and 3 of 4"):
        strangest([1.0, 2.0, 3.0, 4.0], 4)
    with pytest.raises(SettingError, match="number 0 is not one of them"):
        label_trim([1.0, 2.0, 3.0], 1, [0])
    with pytest.raises(ScoreError, match="finite"):
        contamination([1.0, np.nan])
    with pytest.raises(ScoreError, match="left must lie"):
        trimmed_rate(10, 0.1, left=10)
