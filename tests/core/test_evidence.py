"""e-values over seeds, and an envelope for the false discovery proportion."""

import numpy as np
import pytest
from scipy import stats

from idecode_core.conformal import p_values
from idecode_core.conformal.evidence import derandomised_e_values, e_benjamini_hochberg, envelope
from idecode_core.conformal.multiple import benjamini_hochberg, false_discovery_proportion
from idecode_core.errors import ScoreError, SettingError

K, M, Q = 200, 40, 0.2
IS_OOD = np.arange(M) < 12


def runs(generator: np.random.Generator, count: int, shift: float = 3.5):
    """Scores of the same points under `count` seeds: the point's own strangeness, and noise of the draws."""
    known, asked = generator.normal(size=K), generator.normal(size=M) + shift * IS_OOD
    return known + 0.7 * generator.normal(size=(count, K)), asked + 0.7 * generator.normal(size=(count, M))


def test_the_false_discovery_rate_is_at_most_q_and_verdicts_flip_less_than_with_one_seed() -> None:
    """Mean over 500 worlds minus 3.3 standard errors; flips are counted between two disjoint sets of seeds."""
    generator, proportions, flips, single = np.random.default_rng(0), [], 0, 0
    for _ in range(500):
        known, asked = runs(generator, 20)
        halves = [
            e_benjamini_hochberg(derandomised_e_values(known[part], asked[part], Q / 2), Q)
            for part in (slice(0, 10), slice(10, 20))
        ]
        proportions.append(false_discovery_proportion(halves[0], IS_OOD))
        flips += int(np.count_nonzero(halves[0] != halves[1]))
        one, two = (benjamini_hochberg(p_values(known[i], asked[i]), Q) for i in (0, 10))
        single += int(np.count_nonzero(one != two))
    assert np.mean(proportions) - 3.3 * np.std(proportions) / np.sqrt(500) <= Q
    assert flips < single / 2
    assert np.mean(proportions) > 0  # something is flagged


def test_e_values_of_points_that_belong_sum_to_at_most_their_number_on_average() -> None:
    generator, sums = np.random.default_rng(1), []
    for _ in range(3_000):
        e = derandomised_e_values(generator.normal(size=(1, 50)), generator.normal(size=(1, 10)), 0.3)
        sums.append(e.sum())
    assert np.mean(sums) - 3.3 * np.std(sums) / np.sqrt(3_000) <= 10


def test_one_run_equals_the_definition_by_trying_every_cut() -> None:
    generator = np.random.default_rng(2)
    for _ in range(200):
        known, asked = generator.normal(size=30).round(1), generator.normal(1.0, size=8).round(1)
        best = np.zeros(8)
        for cut in sorted({*known, *asked}):
            above, hits = int((known >= cut).sum()), int((asked >= cut).sum())
            if hits and (8 / 30) * above / hits <= 0.3003:
                best = np.where(asked >= cut, 31 / (1 + above), 0.0)
                break
        assert derandomised_e_values(known[None], asked[None], 0.3003) == pytest.approx(best, rel=1e-12)


def test_a_single_run_of_e_values_flags_like_the_textbook() -> None:
    e = np.array([0.0, 50.0, 21.0, 20.0, 3.0])
    expected = [i for i in range(1, 6) if np.sort(e)[::-1][i - 1] >= 5 / (0.1 * i)]
    assert e_benjamini_hochberg(e, 0.1).sum() == max(expected)


def test_the_envelope_holds_for_all_cuts_at_once() -> None:
    """2,000 worlds; the share in which any cut breaks the bound is at most delta, by the exact binomial at 0.0005."""
    generator, broken, delta = np.random.default_rng(3), 0, 0.2
    bound = envelope(K, M, delta, generator=generator, repeats=2_000)
    for _ in range(2_000):
        p = p_values(generator.normal(size=K), generator.normal(size=M) + 3.0 * IS_OOD)
        share = bound.false_discoveries(p)
        true = [false_discovery_proportion(p <= cut, IS_OOD) for cut in p]
        broken += bool(np.any(np.array(true) > share + 1e-12))
    assert broken <= stats.binom.ppf(0.9995, 2_000, delta)


def test_without_strange_points_the_envelope_is_as_tight_as_promised_and_with_them_it_says_something() -> (
    None
):
    generator, broken = np.random.default_rng(4), 0
    bound = envelope(K, M, 0.2, generator=generator, repeats=2_000)
    for _ in range(2_000):
        ranks = np.round(p_values(generator.normal(size=K), generator.normal(size=M)) * (K + 1)).astype(int)
        counts = np.cumsum(np.bincount(ranks - 1, minlength=K + 1))
        broken += bool(np.any(counts > bound.most))
    assert stats.binom.ppf(0.0005, 2_000, 0.1) <= broken <= stats.binom.ppf(0.9995, 2_000, 0.2)
    p = np.r_[np.full(12, 1 / (K + 1)), np.linspace(0.1, 1, 28)]
    assert bound.false_discoveries(p)[0] < 0.4
    assert bound.false_discoveries(p)[-1] == pytest.approx(
        (M - 12 * (1 - bound.false_discoveries(p)[0])) / M, abs=0.2
    )


def test_bad_input_has_one_clear_sentence() -> None:
    with pytest.raises(SettingError, match="q must lie"):
        e_benjamini_hochberg([1.0], 0.0)
    with pytest.raises(ScoreError, match="negative"):
        e_benjamini_hochberg([-1.0], 0.1)
    with pytest.raises(ScoreError, match="2 and 1 runs"):
        derandomised_e_values(np.ones((2, 3)), np.ones((1, 3)), 0.1)
    with pytest.raises(SettingError, match="too few for delta"):
        envelope(10, 5, 0.001, generator=np.random.default_rng(0), repeats=10)
    with pytest.raises(ScoreError, match="for 5 points"):
        envelope(10, 5, 0.2, generator=np.random.default_rng(0), repeats=10).false_discoveries([0.5])
