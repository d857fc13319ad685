"""Several detectors, one p-value: what keeps the bound, and what breaks it."""

import math

import numpy as np
import pytest
from scipy import stats

from idecode_core.conformal import p_values
from idecode_core.conformal.merging import (
    bonferroni,
    fisher_assuming_independence,
    harmonic,
    harmonic_constant,
    member_p_values,
    merged_p_values,
    sum_of_log_ranks,
    twice_the_mean,
)
from idecode_core.errors import ScoreError

MERGERS = {"bonferroni": bonferroni, "twice_the_mean": twice_the_mean, "harmonic": harmonic}


def members(generator, count, *, strange=0.0, number=3):
    """Scores of several detectors that share most of what they see in a point. Shape (count, number)."""
    shared = generator.normal(loc=strange, size=(count, 1))
    return shared + 0.5 * generator.normal(size=(count, number)) * np.array([1.0, 1.0, 2.0])[:number]


def dependent_uniforms(kind, generator, count, m):
    if kind == "independent":
        return 1 - generator.random((count, m))
    if kind == "equal":
        return np.repeat(1 - generator.random((count, 1)), m, axis=1)
    if kind == "opposed":
        u = 1 - generator.random((count, 1))
        return np.where(np.arange(m) % 2 == 0, u, np.nextafter(1 - u, 1))
    gaussian = generator.normal(size=(count, 1)) + generator.normal(size=(count, m))
    return stats.norm.cdf(gaussian / math.sqrt(2))


def rearrange(columns, rounds=200):
    """The rearrangement algorithm: orders each column against the sum of the others, so that row sums are alike."""
    for _ in range(rounds):
        before = columns.sum(axis=1).min()
        for j in range(columns.shape[1]):
            rest = columns.sum(axis=1) - columns[:, j]
            columns[np.argsort(rest), j] = np.sort(columns[:, j])[::-1]
        if columns.sum(axis=1).min() <= before:
            break
    return columns


@pytest.mark.parametrize("name", MERGERS)
@pytest.mark.parametrize("kind", ["independent", "equal", "opposed", "gaussian"])
def test_mergers_keep_the_bound_under_dependence(name, kind):
    # One-sided binomial tests at three levels, error level 0.001 each.
    p = MERGERS[name](dependent_uniforms(kind, np.random.default_rng(0), 20_000, 5))
    for epsilon in (0.01, 0.05, 0.2):
        flagged = int((p < epsilon).sum())
        assert stats.binomtest(flagged, p.size, epsilon, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize("m", [2, 3, 5, 10])
def test_the_harmonic_constant_is_the_smallest_valid_one(m):
    # Worst case: on an event of probability epsilon all p-values lie below epsilon and their reciprocals are arranged
    # to have nearly equal sums. The smallest such sum tends to m a_m from below as the grid becomes finer.
    grid = 20_000
    generator = np.random.default_rng(0)
    columns = np.stack([generator.permutation(grid / np.arange(1, grid + 1)) for _ in range(m)], axis=1)
    worst = rearrange(columns).sum(axis=1).min() / m
    assert worst <= harmonic_constant(m)
    assert worst == pytest.approx(harmonic_constant(m), rel=2e-3)
    assert m == 2 or harmonic_constant(m) <= math.e * math.log(m)


def test_bonferroni_and_twice_the_mean_are_tight_in_their_worst_cases():
    # Bonferroni: exactly one member at a time is small. Twice the mean: below 2 epsilon the members balance.
    generator = np.random.default_rng(1)
    m, epsilon, count = 4, 0.2, 20_000
    u = generator.random(count)
    p = np.where(np.arange(m) == generator.integers(0, m, count)[:, None], u[:, None] * epsilon / m, 1.0)
    assert np.all(bonferroni(p) <= epsilon)
    balanced = np.stack([u * epsilon, (1 - u) * epsilon], axis=1) + 1e-12
    assert np.allclose(twice_the_mean(balanced), epsilon)


def test_mergers_equal_their_formulas():
    p = np.random.default_rng(2).random((50, 4)) + 1e-6
    p = np.minimum(p, 1.0)
    for row, b, t, h, f in zip(
        p, bonferroni(p), twice_the_mean(p), harmonic(p), fisher_assuming_independence(p), strict=True
    ):
        assert b == min(1.0, 4 * min(row))
        assert t == pytest.approx(min(1.0, 2 * sum(row) / 4))
        assert h == pytest.approx(min(1.0, harmonic_constant(4) * 4 / sum(1 / v for v in row)))
        assert f == pytest.approx(stats.combine_pvalues(row, method="fisher").pvalue)


def test_one_member_is_left_as_it_is_by_bonferroni_and_harmonic():
    p = np.array([[0.3], [0.01]])
    assert bonferroni(p).tolist() == [0.3, 0.01]
    assert harmonic(p) == pytest.approx([0.3, 0.01])


def test_member_p_values_rank_each_member_among_its_own():
    generator = np.random.default_rng(3)
    ranking, scores = generator.normal(size=(40, 3)), generator.normal(size=(7, 3))
    for column in range(3):
        expected = p_values(ranking[:, column], scores[:, column])
        assert np.array_equal(member_p_values(ranking, scores)[:, column], expected)


def test_merging_keeps_the_bound_and_naive_fisher_breaks_it():
    # Each repeat has its own calibration and one test point. Error level 0.001.
    generator, epsilon, repeats = np.random.default_rng(4), 0.1, 3_000
    merged = fisher = 0
    for _ in range(repeats):
        ranking, calibration, test = (members(generator, size) for size in (50, 50, 1))
        merged += merged_p_values(ranking, calibration, test)[0] < epsilon
        fisher += fisher_assuming_independence(member_p_values(calibration, test))[0] < epsilon
    assert stats.binomtest(int(merged), repeats, epsilon, alternative="greater").pvalue > 0.001
    assert stats.binomtest(int(fisher), repeats, epsilon, alternative="greater").pvalue < 1e-9


def test_merging_gains_when_members_see_different_things():
    generator = np.random.default_rng(5)
    ranking, calibration = generator.normal(size=(2, 1_000, 2))
    strange = generator.normal(loc=2.0, size=(2_000, 2))
    merged = np.mean(merged_p_values(ranking, calibration, strange) < 0.05)
    single = [np.mean(p_values(calibration[:, j], strange[:, j]) < 0.05) for j in range(2)]
    assert merged > max(single) + 0.1


def test_any_function_can_merge():
    generator = np.random.default_rng(6)
    ranking, calibration = generator.normal(size=(2, 30, 2))
    test = generator.normal(size=(5, 2))
    by_best = merged_p_values(ranking, calibration, test, merge=lambda p: -p.min(axis=1))
    expected = p_values(
        -member_p_values(ranking, calibration).min(axis=1), -member_p_values(ranking, test).min(axis=1)
    )
    assert np.array_equal(by_best, expected)
    assert sum_of_log_ranks(np.array([[0.1, 0.01]]))[0] == pytest.approx(math.log(1000))


def test_members_must_match():
    with pytest.raises(ScoreError, match="each of the 3 members"):
        member_p_values(np.ones((4, 3)), np.ones((2, 2)))
    with pytest.raises(ScoreError, match="count, n"):
        bonferroni([0.1, 0.2])
