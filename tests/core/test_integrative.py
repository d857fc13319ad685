"""Known outliers: they add power, and the bound is kept whatever they are."""

import numpy as np
import pytest
from scipy import stats

from idecode_core.conformal.integrative import gain, integrative_p_values, outlier_direction
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


def test_ten_outliers_add_power_where_only_one_of_many_scores_sees_them() -> None:
    generator, known = np.random.default_rng(1), np.random.default_rng(2).normal(size=(500, 6))
    shift = np.array([3.0, 0, 0, 0, 0, 0])
    strange, asked = generator.normal(size=(10, 6)) + shift, generator.normal(size=(300, 6)) + shift
    with_them = np.mean(integrative_p_values(known, strange, asked) < 0.05)
    plain = np.mean(stats.norm.sf(asked.sum(axis=1) / np.sqrt(6)) < 0.05)
    assert with_them > plain + 0.3
    learned, summed = gain(known, strange, 0.05)
    assert learned >= summed


def test_the_direction_is_fishers_with_a_tenth_of_the_diagonal() -> None:
    generator = np.random.default_rng(3)
    inside = generator.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=400) * [1.0, 50.0]
    outliers = inside[:20] + np.array([2.0, 150.0])
    spread = inside.std(axis=0)
    covariance = np.cov(inside / spread, rowvar=False)
    mixed = 0.9 * covariance + 0.1 * np.eye(2)
    expected = np.linalg.inv(mixed) @ ((outliers - inside.mean(axis=0)).mean(axis=0) / spread) / spread
    np.testing.assert_allclose(outlier_direction(inside, outliers), np.maximum(expected, 0), rtol=1e-9)
    assert (
        outlier_direction(inside, inside[:5] - 5 * spread).tolist() == (1 / spread).tolist()
    )  # equal weights


def test_ties_only_lower_the_rate_and_bad_input_is_one_sentence() -> None:
    assert integrative_p_values(np.zeros((9, 2)), np.ones((3, 2)), np.zeros((1, 2))).tolist() == [1.0]
    known = np.random.default_rng(4).normal(size=(20, 2))
    with pytest.raises(InputError, match="2 of the known outliers are calibration points too"):
        integrative_p_values(known, known[:2], known[:1])
    with pytest.raises(ScoreError, match="the same scores"):
        integrative_p_values(known, [[1.0]], known)
    with pytest.raises(ScoreError, match="finite"):
        integrative_p_values(known, [[np.nan, 1.0]], known)
