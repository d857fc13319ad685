"""The guarantee in words, held against the law."""

import numpy as np
import pytest

from idecode_core.conformal import FalseDetectionLaw, flagging_rank, observed_band
from idecode_core.conformal.conditional import corrected_epsilon
from idecode_core.conformal.observed import ObservedRate, predictive_bands
from idecode_core.conformal.statement import Guarantee


@pytest.mark.parametrize(("k", "epsilon"), [(1000, 0.05), (75, 0.01), (20, 0.05)])
def test_the_statement_says_when_nothing_can_be_flagged(k, epsilon):
    guarantee = Guarantee(k, epsilon)
    can = FalseDetectionLaw(k, epsilon).J > 0
    assert ("nothing can ever be flagged" in guarantee.statement()) is not can
    assert (guarantee.corrected is None) == (k < guarantee.k_needed_when_sure)
    if guarantee.corrected is None:
        assert f"k = {guarantee.k_needed_when_sure:,}" in guarantee.correction()
    else:
        # By the law: with the corrected epsilon at least nine in ten calibration sets stay at or below epsilon.
        assert FalseDetectionLaw(k, guarantee.corrected).quantile(0.9) <= epsilon


def seen(flagged: int, total: int = 2500) -> ObservedRate:
    return ObservedRate(0.05, flagged, total, 0.0, 1.0)


def test_a_rate_above_epsilon_is_named_and_judged_against_the_band_for_this_k_and_these_points():
    guarantee = Guarantee(5000, 0.05)
    low, high = observed_band(5000, 0.05, 2500, level=0.99)
    above = guarantee.chance(seen(153))
    assert high > 153 / 2500 > 0.05
    assert "above epsilon = 0.05" in above
    assert f"between {low:.2%} and {high:.2%} in 99% of cases" in above
    assert "chance at that level" in above
    assert "chance does not explain it" in guarantee.chance(seen(int(high * 2500) + 1))
    assert "lower than chance explains" in guarantee.chance(seen(round(low * 2500) - 1))
    assert "not above epsilon" in guarantee.chance(seen(125))


@pytest.mark.parametrize(("k", "points"), [(5000, 2500), (75, 300), (20, 10)])
def test_predictive_bands_are_those_of_the_law(k, points):
    epsilons = [0.001, 0.03, 0.05, 0.2, 0.5]
    expected = [observed_band(k, epsilon, points, level=0.99) for epsilon in epsilons]
    np.testing.assert_allclose(np.column_stack(predictive_bands(k, epsilons, points)), expected)


@pytest.mark.parametrize(
    ("k", "epsilon", "delta"), [(5000, 0.05, 0.1), (400, 0.1, 0.01), (123_457, 0.037, 0.2)]
)
def test_the_corrected_epsilon_can_be_typed_and_flags_what_the_exact_one_flags(k, epsilon, delta):
    short, exact = Guarantee(k, epsilon, delta).corrected, corrected_epsilon(k, epsilon, delta)
    assert short is not None
    assert flagging_rank(k, short) == flagging_rank(k, exact)
    assert short <= exact
    assert float(f"{short:g}") == short, "as a link writes it"
    assert f"set epsilon to {short:g}." in Guarantee(k, epsilon, delta).correction()


def test_what_the_corrected_epsilon_keeps_is_what_was_asked_for():
    corrected = Guarantee(5000, 0.05).corrected
    assert corrected is not None
    assert (
        f"at most {FalseDetectionLaw(5000, corrected).quantile(0.9):.2%}"
        in Guarantee(5000, corrected).kept_rate()
    )
