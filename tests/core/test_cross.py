"""Cross-conformal p-values: counted by hand, equal to Eq. 5 where the model learns nothing, and within their looser bound."""

import numpy as np
import pytest
from scipy import stats

from idecode_core.conformal import p_values
from idecode_core.conformal.cross import cross_bound, cross_p_values, cross_scores, neighbour_p_values
from idecode_core.errors import IdecodeError


def nearest(fitted: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """The distance from the nearest point: 0 for what it was fitted to, so a leak would show at once."""
    return np.sqrt(((asked[:, None] - fitted) ** 2).sum(axis=2)).min(axis=1)


def test_each_point_is_scored_without_its_fold_and_counted_by_that_fold_s_model() -> None:
    generator = np.random.default_rng(0)
    points, new = generator.normal(size=(11, 2)), generator.normal(size=(4, 2))
    found = cross_p_values(*cross_scores(nearest, points, new, generator=generator))
    for x, p in zip(new, found, strict=True):  # one point per fold, whatever their order
        above = 0
        for j in range(11):
            rest = np.delete(points, j, axis=0)
            above += nearest(rest, points[j : j + 1])[0] >= nearest(rest, x[None])[0]
        assert p == pytest.approx((1 + above) / 12)


@pytest.mark.parametrize("folds", [2, 7, 30])
def test_a_model_that_learns_nothing_has_the_p_values_of_equation_5_with_ties_too(folds: int) -> None:
    generator = np.random.default_rng(folds)
    points, new = (generator.integers(0, 9, size=(count, 1)).astype(float) for count in (30, 50))

    def itself(fitted: np.ndarray, asked: np.ndarray) -> np.ndarray:
        return asked[:, 0]

    found = cross_p_values(*cross_scores(itself, points, new, folds, generator=generator))
    np.testing.assert_array_equal(found, p_values(points[:, 0], new[:, 0]))


def test_the_rate_stays_below_the_looser_bound() -> None:
    """Leave-one-out, 2 epsilon; fails by chance less than once in a thousand seeds."""
    generator, trials, hits = np.random.default_rng(1), 2_000, 0
    for _ in range(trials):
        points = generator.normal(size=(20, 2))
        scores = cross_scores(nearest, points[:19], points[19:], generator=generator)
        hits += int(cross_p_values(*scores)[0] < 0.11)
    assert 0.02 < hits / trials <= stats.binom.ppf(0.999, trials, 0.22) / trials


def test_the_bound_is_that_of_theorem_4() -> None:
    """Barber et al. (2021): 2 alpha + min(2 (1 - 1/K) / (n/K + 1), (1 - K/n) / (K + 1))."""
    for n, folds in ((100, 10), (100, 2), (60, 60), (1000, 20)):
        wanted = 0.2 + min(2 * (1 - 1 / folds) / (n / folds + 1), (1 - folds / n) / (folds + 1))
        assert cross_bound([n // folds] * folds, 0.1) == pytest.approx(wanted)
    assert cross_bound([4, 3], 0.1) == pytest.approx(0.2 + 2 / 9)  # unequal folds: the first term alone


@pytest.mark.parametrize(
    ("held_out", "new", "words"),
    [
        ([[1.0, 2.0]], [[1.0]], "at least two folds"),
        ([[1.0], [2.0]], [[1.0]], r"expected \(2, count\)"),
        ([[1.0], []], [[1.0], [1.0]], "fold 2"),
        ([[1.0], [2.0]], [[1.0], [np.nan]], "NaN"),
    ],
)
def test_bad_folds_cost_a_sentence(held_out, new, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(IdecodeError, match=words):
        cross_p_values(held_out, new)


def test_too_many_folds_are_refused() -> None:
    with pytest.raises(IdecodeError, match="between 2 and the number of points, 3"):
        cross_scores(nearest, np.zeros((3, 1)), np.zeros((1, 1)), 4, generator=np.random.default_rng(0))


@pytest.mark.parametrize("k", [1, 3])
def test_full_conformal_scores_each_point_by_all_others_the_new_one_among_them(k: int) -> None:
    generator = np.random.default_rng(k)
    known, new = generator.integers(0, 6, size=(12, 2)).astype(float), generator.integers(0, 9, size=(20, 2))
    expected = []
    for x in new:
        bag = np.concatenate([known, x[None]])
        scores = [
            np.sort(np.linalg.norm(np.delete(bag, i, axis=0) - bag[i], axis=1))[k - 1] for i in range(13)
        ]
        expected.append(np.mean(np.array(scores) >= scores[-1] - 1e-12))
    np.testing.assert_allclose(neighbour_p_values(known, new, k), expected)


def test_full_conformal_keeps_epsilon_itself() -> None:
    """P(p <= j / 20) is j / 20 without ties; the band would be left by chance once in a thousand seeds."""
    generator, trials = np.random.default_rng(2), 4_000
    hits = sum(
        int(neighbour_p_values(points[:19], points[19:], 2)[0] < 0.151)
        for points in (generator.normal(size=(20, 3)) for _ in range(trials))
    )
    low, high = stats.binom.ppf([0.0005, 0.9995], trials, 0.15)
    assert low <= hits <= high


@pytest.mark.parametrize(("known", "k"), [(np.zeros((2, 2)), 2), (np.zeros((5, 3)), 1)])
def test_full_conformal_needs_more_points_than_neighbours_and_equal_widths(known, k) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(IdecodeError, match="Expected more than"):
        neighbour_p_values(known, np.zeros((1, 2)), k)
