"""Known outliers: they add power, and the bound is kept whatever they are."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from idecode_core.conformal import p_values
from idecode_core.conformal.integrative import gain, integrative_p_values
from idecode_core.errors import InputError, ScoreError

EPSILON, K = 0.1, 60


@pytest.mark.parametrize(
    "where", [(0.0, 4.0), (-5.0, -5.0), (0.0, 0.0)], ids=["helpful", "misleading", "useless"]
)
def test_the_bound_is_kept_whatever_the_outliers_are(where) -> None:
    """6,000 worlds, exact 99.9 % band around J/(k+1): without ties the rank is uniform. 6 of 61 levels lie below 0.1."""
    generator, trials, flagged = np.random.default_rng(0), 6_000, 0
    for _ in range(trials):
        strange = generator.normal(where, size=(5, 2))
        flagged += (
            integrative_p_values(generator.normal(size=(K, 2)), strange, generator.normal(size=(1, 2)))[0]
            < EPSILON
        )
    low, high = stats.binom(trials, 6 / 61).interval(0.999)
    assert low <= flagged <= high


def by_definition(known, strange, point) -> float:
    """Algorithm 1 of the paper, with fractions, for one score per point: u0 by the score, u1 by the distance from the outliers' mean."""
    inside, outliers = [*known, point], list(strange)
    distances = [abs(o - np.mean([*outliers[:i], *outliers[i + 1 :]] or [o])) for i, o in enumerate(outliers)]
    ratios = []
    for x in inside:
        u0 = Fraction(sum(other >= x for other in inside), len(inside))
        near = sum(distance >= abs(x - np.mean(outliers)) for distance in distances)
        ratios.append((u0 / Fraction(1 + near, 1 + len(outliers)), u0))
    return sum(ratio <= ratios[-1] for ratio in ratios) / len(inside)


@pytest.mark.parametrize("outliers", [1, 2, 7])
def test_p_values_equal_the_definition(outliers) -> None:
    """Outliers in the middle: a rank by the score alone could not find them."""
    generator = np.random.default_rng(outliers)
    known, strange = generator.normal(size=30), generator.normal(1.5, 0.2, size=outliers)
    asked = generator.normal(1.0, size=20)
    expected = [by_definition(known, strange, point) for point in asked]
    found = integrative_p_values(known[:, None], strange[:, None], asked[:, None])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_one_outlier_says_only_which_score_to_look_at() -> None:
    generator = np.random.default_rng(5)
    known, asked = generator.normal(size=(50, 3)), generator.normal(1.0, size=(20, 3))
    found = integrative_p_values(known, [[0.0, 9.0, 0.0]], asked)
    np.testing.assert_allclose(found, p_values(known[:, 1], asked[:, 1]), rtol=1e-12)


@pytest.mark.parametrize(
    ("shift", "spread", "columns", "more"),
    [((3.0, 0, 0, 0, 0, 0), 1.0, "sum", 0.3), ((1.5, -0.5), 0.2, "best", 0.3)],
    ids=["one of six scores sees them", "they lie together among what belongs"],
)
def test_ten_outliers_add_power(shift, spread, columns, more) -> None:
    """Against the p-value of the sum, and against the best single score, which no one knows beforehand."""
    generator = np.random.default_rng(1)
    known = generator.normal(size=(500, len(shift)))
    strange, asked = (spread * generator.normal(size=(count, len(shift))) + shift for count in (10, 300))
    with_them = np.mean(integrative_p_values(known, strange, asked) < 0.05)
    side = {"sum": lambda x: x.sum(axis=1), "best": lambda x: x[:, 0]}[columns]
    assert with_them > np.mean(p_values(side(known), side(asked)) < 0.05) + more
    learned, summed = gain(known, strange, 0.05)
    assert learned >= summed


def test_ties_only_lower_the_rate_and_bad_input_is_one_sentence() -> None:
    assert integrative_p_values(np.zeros((9, 2)), np.ones((3, 2)), np.zeros((1, 2))).tolist() == [1.0]
    known = np.random.default_rng(4).normal(size=(20, 2))
    with pytest.raises(InputError, match="2 of the known outliers are calibration points too"):
        integrative_p_values(known, known[:2], known[:1])
    with pytest.raises(ScoreError, match="the same scores"):
        integrative_p_values(known, [[1.0]], known)
    with pytest.raises(ScoreError, match="outliers are empty"):
        integrative_p_values(known, np.empty((0, 2)), known)
    for place in range(3):
        sides = [known, np.ones((3, 2)), known]
        sides[place] = np.full((3, 2), np.nan)
        with pytest.raises(ScoreError, match="finite"):
            integrative_p_values(*sides)
