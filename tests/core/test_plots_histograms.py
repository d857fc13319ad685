"""Histograms of scores: shares add up to one, and tails are kept."""

import numpy as np
import pytest
from test_plots_evaluation import ALL, RNG

from idecode_core.plots import histograms
from idecode_core.plots.style import CALIBRATION, ID, OOD


def test_each_group_s_bars_add_up_to_one_even_with_scores_far_out():
    scores = np.r_[RNG.exponential(size=500), 1e6]
    made = histograms.score_histograms(
        [histograms.Group("one", scores, ID), histograms.Group("two", scores * 2, OOD)]
    )
    for trace in made.data:
        assert sum(trace.y) == pytest.approx(1.0)
    assert made.layout.xaxis.title.text.endswith("the outermost bars hold all beyond")


def test_scores_with_a_long_tail_are_spaced_by_ratio_and_zeros_are_kept():
    scores = np.r_[np.zeros(1), 10 ** RNG.uniform(-6, 1, size=2000)]
    edges, by_ratio = histograms.bin_edges(scores)
    assert by_ratio
    ratios = edges[1:] / edges[:-1]
    np.testing.assert_allclose(ratios, ratios[0])
    made = histograms.score_histograms([histograms.Group("one", scores, ID)], threshold=0.0)
    assert sum(made.data[0].y) == pytest.approx(1.0)
    assert "log scale" in made.layout.xaxis.title.text


def test_calibration_is_an_outline_and_its_shares_add_up_to_one():
    line, *bars = ALL["histograms"]().data
    assert (line.type, line.line.color, [bar.type for bar in bars]) == (
        "scatter",
        CALIBRATION,
        ["bar", "bar"],
    )
    assert sum(line.y) == pytest.approx(1.0)


def test_equal_scores_can_be_drawn():
    made = histograms.score_histograms([histograms.Group("one", np.full(10, 3.0), ID)], threshold=np.inf)
    assert sum(made.data[0].y) == pytest.approx(1.0)
    assert made.layout.xaxis.title.text == "score F(V)"
