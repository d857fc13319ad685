"""Do new files come from the same source as the calibration set? Two-sample tests, and what they say in words."""

import numpy as np
import pytest
from scipy import stats

from idecode_core.conformal.same_source import compare


def test_exchangeable_scores_are_seldom_called_different_and_shifted_ones_are():
    generator = np.random.default_rng(4)
    false_alarms = sum(
        compare(generator.normal(size=60), generator.normal(size=300)).differs(0.05) for _ in range(200)
    )
    assert false_alarms <= 22  # at most 5 % in truth: P(Binomial(200, 0.05) > 22) < 0.0005
    shifted = compare(generator.normal(1.0, size=60), generator.normal(size=300))
    assert shifted.differs(0.01)
    assert "stranger" in shifted.reading()


def test_both_tests_together_keep_their_level_and_one_alone_would_not():
    """Exactly 2 min of both p-values, capped; over 4,000 comparisons of the same source the smaller one alone exceeds its level."""
    generator = np.random.default_rng(7)
    found = [compare(generator.normal(size=40), generator.normal(size=80)) for _ in range(4000)]
    either = np.array([min(one.ks_p_value, one.rank_p_value) for one in found])
    assert np.allclose([one.p_value for one in found], np.minimum(1, 2 * either), rtol=0, atol=0)
    most = stats.binom.ppf(0.9995, 4000, 0.05)
    assert np.count_nonzero(either < 0.05) > most  # without Bonferroni
    assert sum(one.differs(0.05) for one in found) <= most


def test_stranger_is_the_share_of_pairs_that_a_new_point_wins():
    new, old = [1.0, 2.0, 5.0], [1.0, 3.0]
    wins = [(a > b) + 0.5 * (a == b) for a in new for b in old]
    assert compare(new, old).stranger == pytest.approx(np.mean(wins))


def test_readings_are_plain_in_each_case():
    generator = np.random.default_rng(5)
    old = generator.normal(size=400)
    assert "No difference was found" in compare(generator.normal(size=50), old).reading()
    assert "more ordinary" in compare(generator.normal(-2, size=50), old).reading()
    assert "spread differently" in compare(generator.normal(0, 4, size=400), old).reading()
    sure = compare(generator.normal(3, size=150), old)
    assert sure.p_value < 1e-20
    assert "(p < 0.001)" in sure.reading()  # 150 files do not make 1e-53
