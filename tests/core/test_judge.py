"""The last lines of Algorithm 1: verdicts from score vectors, every number computed a second way."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from idecode_core.conformal.calibration import AGGREGATES, Calibration
from idecode_core.conformal.groups import mondrian_p_values
from idecode_core.conformal.integrative import integrative_p_values
from idecode_core.conformal.judge import judge, p_by_n, places, smoothing_generator
from idecode_core.conformal.weighted import weighted_p_values, weighted_selection
from idecode_core.errors import SettingError

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
    assert list(judge(CALIBRATION, VECTORS, n=6, epsilon=0.1)) == alone


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
    for verdict, content in zip(smoothed, hashes, strict=True):
        u = 1 - smoothing_generator(content, 3).random()
        above = sum(row.sum() > verdict.score for row in CALIBRATION.score_vectors)  # no ties among these
        assert verdict.p_value == pytest.approx((above + u) / 100)
    assert all(s.p_value <= p.p_value for s, p in zip(smoothed, plain, strict=True))


def test_the_number_that_breaks_ties_is_uniform_over_contents_and_seeds() -> None:
    """One content gives one number for a seed and another for the next; over contents, and over seeds, they are uniform (KS, 0.001)."""
    contents = [hashlib.sha256(bytes([i, j])).hexdigest()[:32] for i in range(30) for j in range(30)]
    over_contents = [smoothing_generator(content, 0).random() for content in contents]
    over_seeds = [smoothing_generator(contents[0], seed).random() for seed in range(900)]
    assert smoothing_generator(contents[5], 0).random() == over_contents[5]
    for drawn in (over_contents, over_seeds):
        assert len(set(drawn)) == 900
        assert stats.kstest(drawn, "uniform").pvalue > 0.001
    assert abs(stats.spearmanr(over_contents, over_seeds).statistic) < 0.11  # 3.3 standard errors


def test_more_draws_than_stored_are_refused() -> None:
    with pytest.raises(SettingError, match="n=7"):
        judge(CALIBRATION, VECTORS, n=7, epsilon=0.1)


def test_p_by_n_is_the_p_value_of_each_prefix() -> None:
    assert p_by_n(CALIBRATION, VECTORS[30]) == pytest.approx([counted_p(VECTORS[30], n) for n in range(1, 7)])


def test_places_are_shares_of_all_single_calibration_scores() -> None:
    expected = [np.mean(CALIBRATION.score_vectors < score) for score in VECTORS[5]]
    assert places(CALIBRATION, VECTORS[5]) == pytest.approx(expected)


few_values = st.integers(0, 4).map(float)  # ties are the rule, not the exception


def vectors(rows: int, n: int = 3) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, st.tuples(st.integers(1, rows), st.just(n)), elements=few_values)


@given(
    vectors(30), vectors(20), st.sampled_from(sorted(AGGREGATES)), st.integers(1, 3), st.floats(0.01, 0.99)
)
def test_scores_ranks_p_values_and_flags_are_those_of_counting(stored, test, aggregate, n, epsilon) -> None:
    def by_hand(row: np.ndarray) -> float:
        return float(AGGREGATES[aggregate](row[None, :n].copy())[0])

    found = judge(Calibration(stored), test, n=n, epsilon=epsilon, aggregate=aggregate)
    for verdict, row in zip(found, test, strict=True):
        at_least = sum(by_hand(other) >= by_hand(row) for other in stored)
        assert (verdict.score, verdict.rank, verdict.k) == (by_hand(row), at_least, len(stored))
        assert verdict.p_value == (at_least + 1) / (len(stored) + 1)
        assert verdict.is_ood == (verdict.p_value < epsilon) == (verdict.score > found.threshold)
        assert verdict.batch == 1


@given(vectors(40), vectors(20), st.floats(0.01, 0.99))
def test_with_false_discovery_control_a_point_is_flagged_exactly_when_it_scores_above_the_threshold(
    stored, test, q
) -> None:
    found = judge(Calibration(stored), test, epsilon=q, false_discovery_control=True)
    assert found.is_ood.tolist() == (found.scores > found.threshold).tolist()
    assert all(verdict.batch == len(test) for verdict in found)


@given(st.integers(1, 40), st.integers(1, 20), st.data())
def test_the_threshold_of_a_batch_keeps_to_the_flags_where_q_over_m_rounds_onto_a_p_value(k, m, data) -> None:
    # One point has p = place/(k+1), the others p = 1; q is m p or a neighbour of it in floating point.
    place = data.draw(st.integers(1, k + 1))
    q = float(np.nextafter(m * (place / (k + 1)), data.draw(st.sampled_from([0.0, 1.0]))))
    assume(0 < q < 1)
    test = np.array([[k + 1.5 - place], *[[0.0]] * (m - 1)])
    found = judge(Calibration(np.arange(1.0, k + 1)[:, None]), test, epsilon=q, false_discovery_control=True)
    assert found.is_ood.tolist() == (found.scores > found.threshold).tolist()


@given(vectors(40), vectors(20), st.integers(0, 2**32 - 1))
def test_with_groups_a_point_is_ranked_within_its_own(stored, test, seed) -> None:
    generator = np.random.default_rng(seed)
    known = generator.integers(0, 3, len(stored))
    asked = generator.choice(known, len(test))
    found = judge(Calibration(stored), test, epsilon=0.3, groups=(known, asked))
    assert np.array_equal(
        found.p_values, mondrian_p_values(stored.sum(axis=1), known, test.sum(axis=1), asked)
    )
    for verdict, row, group in zip(found, test, asked, strict=True):
        own = stored[known == group].sum(axis=1)
        assert verdict.p_value == (sum(own >= row.sum()) + 1) / (len(own) + 1)
        assert verdict.is_ood == (verdict.p_value < 0.3)


def test_groups_and_smoothing_together_are_refused() -> None:
    generators = [np.random.default_rng(0)]
    with pytest.raises(SettingError, match="leave one of them out"):
        judge(CALIBRATION, VECTORS[:1], epsilon=0.1, smoothed_by=generators, groups=([0] * 99, [0]))


def test_a_smoothed_p_value_is_that_of_the_point_s_own_generator_with_ties() -> None:
    stored, test = np.array([[1.0], [2.0], [2.0], [3.0]]), np.array([[2.0], [2.0], [9.0]])
    found = judge(
        Calibration(stored), test, epsilon=0.5, smoothed_by=[np.random.default_rng(i) for i in range(3)]
    )
    u = [1 - np.random.default_rng(i).random() for i in range(3)]
    assert found.p_values == pytest.approx([(1 + u[0] * 3) / 5, (1 + u[1] * 3) / 5, u[2] / 5])


def test_an_epsilon_that_cannot_flag_has_no_threshold() -> None:
    found = judge(CALIBRATION, VECTORS, epsilon=0.01)  # the smallest p-value is 1/100
    assert found.threshold == math.inf
    assert not found.is_ood.any()


def test_weights_and_known_outliers_change_p_values_and_not_scores() -> None:
    known, new = CALIBRATION.score_vectors[:, :4], VECTORS[:, :4]
    weights = GENERATOR.exponential(size=99), GENERATOR.exponential(size=40)
    sides = known.sum(axis=1), weights[0], new.sum(axis=1), weights[1]
    found = judge(CALIBRATION, VECTORS, n=4, epsilon=0.2, weights=weights)
    np.testing.assert_allclose(found.p_values, weighted_p_values(*sides), rtol=1e-12)
    np.testing.assert_array_equal(found.is_ood, found.p_values < 0.2)
    together = judge(CALIBRATION, VECTORS, n=4, epsilon=0.9, weights=weights, false_discovery_control=True)
    np.testing.assert_array_equal(together.is_ood, weighted_selection(*sides, 0.9))
    assert together.is_ood.any()
    strange = GENERATOR.exponential(4, size=(6, 5))
    found = judge(CALIBRATION, VECTORS, n=4, epsilon=0.2, outliers=strange)
    np.testing.assert_array_equal(found.p_values, integrative_p_values(known, strange[:, :4], new))
    np.testing.assert_allclose(found.scores, new.sum(axis=1))
    for options in ({"weights": weights}, {"false_discovery_control": True}):
        with pytest.raises(SettingError, match="nothing is proven for both"):
            judge(CALIBRATION, VECTORS, n=4, epsilon=0.2, outliers=strange, **options)
