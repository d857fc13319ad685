"""Bounds on AUROC, TNR and FPR hold for the truth as often as they say."""

import numpy as np
import pytest
from scipy import stats

from idecode_core.errors import ScoreError, SettingError
from idecode_core.quality.metrics import auroc, conformal_bounds, fpr_at_tpr, tnr_at_tpr

TRIALS, DELTA = 1_000, 0.2


@pytest.mark.parametrize(("points", "shift"), [((60, 30), 2.0), ((300, 200), 1.0)])
def test_the_truth_is_on_the_promised_side_as_often_as_promised(points, shift) -> None:
    """Normal scores: AUROC is Phi(shift / sqrt 2); TNR and FPR at a true TPR by the normal law. Exact binomial at 0.0005."""
    generator, broken = np.random.default_rng(0), np.zeros(3)
    true = (
        stats.norm.cdf(shift / np.sqrt(2)),
        stats.norm.sf(stats.norm.ppf(0.9) - shift),
        stats.norm.cdf(stats.norm.ppf(0.95) - shift),
    )
    for _ in range(TRIALS):
        found = conformal_bounds(
            generator.normal(size=points[0]), generator.normal(shift, size=points[1]), DELTA
        )
        broken += (found.auroc > true[0], found.tnr > true[1], found.fpr < true[2])
    assert (broken <= stats.binom.ppf(0.9995, TRIALS, DELTA)).all()
    assert broken[1] > 0  # it is a bound, not a zero


def test_ties_do_not_break_the_bounds() -> None:
    generator, broken = np.random.default_rng(1), 0
    for _ in range(500):
        known, strange = generator.integers(0, 4, 80), generator.integers(1, 5, 80)
        broken += conformal_bounds(known, strange, DELTA).auroc > 11.5 / 16  # of 16 pairs, 10 won and 3 tied
    assert broken <= stats.binom.ppf(0.9995, 500, DELTA)


def test_bounds_are_below_what_was_seen_and_close_with_many_points() -> None:
    generator = np.random.default_rng(2)
    known, strange = generator.normal(size=20_000), generator.normal(2.0, size=20_000)
    found = conformal_bounds(known, strange)
    assert auroc(known, strange) - 0.04 < found.auroc < auroc(known, strange)
    assert tnr_at_tpr(known, strange, 0.9) - 0.02 < found.tnr < tnr_at_tpr(known, strange, 0.9)
    assert fpr_at_tpr(known, strange, 0.95) < found.fpr < fpr_at_tpr(known, strange, 0.95) + 0.02


def test_few_points_say_little_and_bad_input_one_sentence() -> None:
    found = conformal_bounds([1.0, 2.0], [3.0, 4.0])
    assert (found.tnr, found.fpr) == (0.0, 1.0)
    assert 0 <= found.auroc < 0.5
    with pytest.raises(SettingError, match="delta"):
        conformal_bounds([1.0], [1.0], 1.0)
    with pytest.raises(ScoreError, match="finite"):
        conformal_bounds([np.nan], [1.0])
