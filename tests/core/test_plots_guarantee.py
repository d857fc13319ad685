"""Figures of the guarantee: bands, dots, boxes and the law."""

import numpy as np
import pytest
from test_plots_evaluation import rates_figure, some_study

from idecode_core.conformal import FalseDetectionLaw, law_bands, observed_band
from idecode_core.conformal.observed import ObservedRate
from idecode_core.plots import guarantee as guarantees
from idecode_core.plots.style import ID, OOD


def test_the_band_is_the_exact_law():
    low, high = law_bands(100, [0.005, 0.1, 0.35])
    expected = [FalseDetectionLaw(100, epsilon).interval(0.9) for epsilon in (0.005, 0.1, 0.35)]
    np.testing.assert_allclose(np.column_stack([low, high]), expected)
    band = guarantees.false_detection_rates(100, [0.1, 0.2, 0.3]).data[0]  # drawn there and back again
    half = len(band.x) // 2
    for i in (30, 75):
        low_there, high_there = FalseDetectionLaw(100, band.x[i]).interval(0.9)
        assert (band.y[i], band.y[2 * half - 1 - i]) == pytest.approx((high_there, low_there))


def test_dots_of_a_finite_test_set_are_held_against_a_band_that_has_its_noise():
    band = rates_figure().data[0]
    half = len(band.x) // 2
    assert "200 test inputs" in band.name
    for i in (30, 75):
        low, high = observed_band(100, band.x[i], 200, level=0.99)
        assert (band.y[i], band.y[2 * half - 1 - i]) == pytest.approx((high, low))


def test_a_rate_above_epsilon_is_drawn_above_the_line():
    """A dot beside its epsilon would lie below the diagonal."""
    seen = [ObservedRate(0.05, 61, 1000, 0.047, 0.078), ObservedRate(0.1, 90, 1000, 0.073, 0.11)]
    made = guarantees.false_detection_rates(500, [0.05, 0.1], observed=seen, epsilon=0.05, here=seen[0])
    for dots, rates in zip(made.data[2:], (seen, seen[:1]), strict=True):
        assert list(dots.x) == [one.epsilon for one in rates]
        assert list(dots.y) == [one.rate for one in rates]
        assert [y > x for x, y in zip(dots.x, dots.y, strict=True)] == [
            one.rate > one.epsilon for one in rates
        ]


def test_rate_minus_epsilon_has_true_heights_wherever_a_dot_stands():
    found = some_study()
    made = rates_figure(minus=True)
    dots = next(trace for trace in made.data if trace.name and trace.name.startswith("observed"))
    np.testing.assert_allclose(dots.y, [100 * (one.rate - one.epsilon) for one in found.observed])
    np.testing.assert_allclose(
        np.asarray(dots.y) + dots.error_y.array, [100 * (one.high - one.epsilon) for one in found.observed]
    )
    box = next(trace for trace in made.data if trace.type == "box")
    np.testing.assert_allclose(box.median, 100 * (np.median(found.resampled, axis=0) - found.epsilons))


def test_boxes_are_the_quartiles_of_the_resampled_rates():
    found = some_study()
    box = next(trace for trace in rates_figure().data if trace.type == "box")
    np.testing.assert_allclose(box.median, np.median(found.resampled, axis=0))
    np.testing.assert_allclose(box.q1, np.quantile(found.resampled, 0.25, axis=0))


def test_the_shaded_parts_of_the_law_meet_at_epsilon():
    made = guarantees.rate_law(FalseDetectionLaw(200, 0.1))
    below, above, line = made.data
    assert list(line.x) == [0.1, 0.1]
    assert below.x[-1] == above.x[0] == 0.1
    assert (below.line.color, above.line.color) == (ID, OOD)
