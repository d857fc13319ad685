"""The teaching simulations: the intact run keeps its promise, and each switch breaks what it says."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from idecode_core.errors import SettingError
from lessons.breaking import (
    DIMENSIONS,
    DIRECTION,
    SWITCHES,
    Draws,
    break_it,
    sample_draws,
    sample_points,
    score_vectors,
    train,
)
from lessons.many import BATCH_RULES, changing_stream, mixed_batch

EPSILON = 0.1


@pytest.fixture(scope="module")
def comparisons():
    return {name: break_it(name, generator=np.random.default_rng(0)) for name in SWITCHES}


def mean_and_margin(rates):
    """The mean over repeats, and 3.1 standard errors of it (one-sided error level 0.001)."""
    return rates.mean(), 3.1 * rates.std(ddof=1) / np.sqrt(len(rates))


def flagged(p_values, epsilon=EPSILON):
    """The share below epsilon in each repeat."""
    return (p_values < epsilon).sum(axis=1) / p_values.shape[1]


@pytest.mark.parametrize("name", SWITCHES)
def test_the_intact_run_keeps_the_bound_at_every_epsilon(comparisons, name):
    run = comparisons[name].intact
    for epsilon in np.arange(1, 51) / 100:
        mean, margin = mean_and_margin(flagged(run.p_values, epsilon))
        # 50 epsilons are looked at together: another 2 standard errors keep the whole test near level 0.001.
        assert mean - margin * 5.1 / 3.1 <= epsilon


@pytest.mark.parametrize("name", sorted(set(SWITCHES) - {"contaminated_calibration"}))
def test_the_switch_lifts_the_false_detection_rate_above_epsilon(comparisons, name):
    run = comparisons[name].broken
    mean, margin = mean_and_margin(flagged(run.p_values))
    assert mean - margin > EPSILON


@pytest.mark.parametrize("name", SWITCHES)
def test_the_switch_breaks_uniformity(comparisons, name):
    # The share of p-values below EPSILON in each repeat differs from the intact run in place or spread: level 0.001.
    intact, broken = (flagged(run.p_values) for run in (comparisons[name].intact, comparisons[name].broken))
    assert stats.mannwhitneyu(intact, broken).pvalue < 0.001 or stats.levene(intact, broken).pvalue < 0.001


def test_contamination_blinds_the_detector_while_looking_safe(comparisons):
    comparison = comparisons["contaminated_calibration"]
    mean, margin = mean_and_margin(flagged(comparison.broken.p_values))
    assert mean + margin < EPSILON
    intact, broken = (run.mean_detection_rate(EPSILON) for run in (comparison.intact, comparison.broken))
    assert broken < intact - 0.1


def test_a_shared_draw_makes_single_calibrations_far_more_erratic(comparisons):
    comparison = comparisons["shared_draw"]
    intact, broken = (flagged(run.p_values) for run in (comparison.intact, comparison.broken))
    assert broken.std() > 2 * intact.std()


def test_the_damage_of_memorising_fades_with_more_data():
    few, many = (
        break_it("trained_on_calibration", generator=np.random.default_rng(1), k=k, repeats=60).broken
        for k in (60, 600)
    )
    assert few.mean_false_detection_rate(EPSILON) > many.mean_false_detection_rate(EPSILON) + 0.05


@pytest.mark.parametrize("switch", SWITCHES.values(), ids=SWITCHES)
def test_a_switch_violates_one_assumption_only(switch):
    intact, broken = dataclasses.asdict(switch.intact), dataclasses.asdict(switch.broken)
    assert sum(intact[key] != broken[key] for key in intact) == 1
    assert len(switch.why) > 200


def test_rates_are_the_shares_of_p_values_below_epsilon(comparisons):
    run = comparisons["naive_fisher"].intact
    assert run.p_values.shape == run.ood_p_values.shape == (200, 100)
    assert run.mean_false_detection_rate(0.1) == sum(p < 0.1 for p in run.p_values.ravel()) / 20_000
    assert run.mean_detection_rate(0.1) == sum(p < 0.1 for p in run.ood_p_values.ravel()) / 20_000


def test_one_seed_gives_one_result():
    first, again, other = (
        break_it("shared_draw", generator=np.random.default_rng(seed), repeats=3) for seed in (5, 5, 6)
    )
    assert np.array_equal(first.broken.p_values, again.broken.p_values)
    assert not np.array_equal(first.broken.p_values, other.broken.p_values)


def test_the_toy_score_is_the_error_of_the_model_on_the_transformed_point():
    generator = np.random.default_rng(2)
    x = sample_points(4, generator=generator)
    model = train(sample_points(100, generator=generator), generator=generator)
    draws = sample_draws(4, 3, generator=generator)
    for i in range(4):
        for j in range(3):
            gx = draws.t[i, j] * x[i] + draws.theta[i, j] * DIRECTION
            expected = (model @ gx - draws.theta[i, j]) ** 2
            assert score_vectors(model, x, draws)[i, j] == pytest.approx(expected)
    shared = Draws(draws.t[:1], draws.theta[:1])
    assert score_vectors(model, x, shared).shape == (4, 3)
    assert model.shape == (DIMENSIONS,)


def test_ood_points_score_higher_in_the_toy_world(comparisons):
    run = comparisons["shared_draw"].intact
    assert run.mean_detection_rate(EPSILON) > 3 * run.mean_false_detection_rate(EPSILON)


def test_a_plain_threshold_has_many_false_discoveries_where_bh_keeps_to_q():
    result = mixed_batch(generator=np.random.default_rng(3), ood_share=0.05, repeats=300)
    assert result.false_discovery_proportions.shape == (len(BATCH_RULES), 300)
    plain, *controlled = result.false_discovery_proportions
    assert plain.mean() > 0.4
    for proportions in controlled:
        mean, margin = mean_and_margin(proportions)
        assert mean - margin <= result.q
    mean, margin = mean_and_margin(result.false_detection_rates[0])
    assert mean - margin <= result.epsilon  # and yet the plain threshold keeps the paper's promise
    assert np.array_equal(result.flagged[0], result.p_values < result.epsilon)


@pytest.mark.parametrize(("ood_share", "empty"), [(0.0, "detection_rates"), (1.0, "false_detection_rates")])
def test_rates_of_nothing_are_not_a_number(ood_share, empty):
    result = mixed_batch(generator=np.random.default_rng(4), ood_share=ood_share, repeats=3)
    assert np.all(np.isnan(getattr(result, empty)))


def test_the_stream_alarms_after_the_change_and_not_before():
    run = changing_stream(generator=np.random.default_rng(5))
    assert set(run.watchers) == {"power", "mixture", "simple jumper", "CUSUM"}
    for name in run.watchers:
        assert run.false_alarms(name) == 0
        assert 0 < run.delay(name) < 500
    assert run.delay("CUSUM") < run.delay("power")


def test_a_stream_without_a_change_rarely_alarms():
    # P(any alarm) <= alpha = 0.05 for each martingale: one-sided binomial test, error level 0.001.
    repeats, alarmed = 200, dict.fromkeys(("power", "mixture", "simple jumper"), 0)
    for seed in range(repeats):
        run = changing_stream(
            generator=np.random.default_rng(seed), length=300, change_at=300, k=50, alpha=0.05
        )
        for name in alarmed:
            alarmed[name] += run.false_alarms(name) > 0
            assert run.delay(name) is None
    for count in alarmed.values():
        assert stats.binomtest(count, repeats, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(
    "call",
    [
        lambda g: break_it("nonsense", generator=g),
        lambda g: break_it("shared_draw", generator=g, repeats=0),
        lambda g: mixed_batch(generator=g, ood_share=1.5),
        lambda g: mixed_batch(generator=g, size=0),
        lambda g: changing_stream(generator=g, length=10, change_at=11),
    ],
)
def test_settings_out_of_range_are_refused(call):
    with pytest.raises(SettingError):
        call(np.random.default_rng(0))
