"""Figures of the Attack lab: the change, the classes, the curve."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from test_attack_lab import checkpoints  # noqa: F401  a fixture

from idecode_core.plots.attack import ATTACKED, CLEAN, class_shares, magnified, p_along_strength
from idecode_core.plots.style import ID, OOD
from idecode_core.report.attack import shares


@given(arrays(np.float64, (3, 4, 4), elements=st.floats(-0.2, 0.2)))
def test_the_magnified_difference_is_the_change_times_the_stated_factor_unclipped(change: np.ndarray) -> None:
    pixels, factor = magnified(np.full(change.shape, 0.5), 0.5 + change)
    np.testing.assert_allclose(
        pixels.transpose(2, 0, 1) / 255, np.clip(0.5 + factor * change, 0, 1), atol=0.5 / 255 + 1e-9
    )
    assert factor * np.abs(change).max() <= 0.502


@given(arrays(np.float32, 5, elements=st.floats(-50, 50, width=32)))
def test_shares_are_torch_s_softmax(logits: np.ndarray) -> None:
    np.testing.assert_allclose(shares(logits), torch.softmax(torch.tensor(logits).double(), 0), atol=1e-12)


def test_the_bars_hold_the_top_classes_of_both_pictures() -> None:
    before, after = np.array([0.7, 0.2, 0.06, 0.03, 0.01]), np.array([0.01, 0.1, 0.01, 0.08, 0.8])
    figure = class_shares(tuple("abcde"), before, after, shown=2)
    attacked, clean = figure.data
    assert set(clean.y) == {"a", "b", "e"}
    assert dict(zip(clean.y, clean.x, strict=True)) == pytest.approx({"a": 70, "b": 20, "e": 1})
    assert dict(zip(attacked.y, attacked.x, strict=True)) == pytest.approx({"a": 1, "b": 10, "e": 80})
    assert (clean.marker.color, attacked.marker.color) == (CLEAN, ATTACKED)


def test_dots_of_the_curve_have_the_colour_of_their_verdict() -> None:
    p_values = np.array([0.6, 0.05, 0.049])  # p = epsilon is not flagged
    figure = p_along_strength([0, 1, 2], p_values, np.array([False, True, True]), 0.05, 1, "Strength")
    assert list(figure.data[0].marker.color) == [ID, ID, OOD]
    assert list(figure.data[0].marker.symbol) == ["circle-open", "circle", "circle"]
