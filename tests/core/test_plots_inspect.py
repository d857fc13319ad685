"""Figures of one input: they say what the numbers say, whatever the scores look like."""

import math

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from idecode_core.conformal import threshold
from idecode_core.plots import inspect
from idecode_core.plots.style import ID, OOD, THRESHOLD, faded, finish

GENERATOR = np.random.default_rng(1)
SCORES = {
    "even": GENERATOR.normal(10, 1, 500),
    "skewed": GENERATOR.lognormal(0, 3, 500),
    "with zeros": np.where(GENERATOR.random(500) < 0.1, 0.0, GENERATOR.lognormal(0, 3, 500)),
    "negative": GENERATOR.normal(0, 1, 500),
    "all equal": np.ones(500),
    "zero or one": (GENERATOR.random(500) < 0.2).astype(float),
}


def drawn_texts(figure: go.Figure) -> str:
    return " ".join(text for trace in figure.data for text in (trace.text or ()) if text)


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("is_ood", [True, False])
def test_the_histogram_counts_every_calibration_point_and_marks_the_input(kind: str, is_ood: bool) -> None:
    scores = SCORES[kind]
    score = float(scores.max() * 1.5 + 0.1) if is_ood else float(np.median(scores))
    limit = threshold(scores, 0.05)
    figure = inspect.aggregate_on_histogram(scores, score, limit, is_ood=is_ood)
    usual, flagged, *lines = figure.data
    assert sum(usual.y) + sum(flagged.y) == len(scores)
    assert [line.line.color for line in lines] == [THRESHOLD, OOD if is_ood else ID]
    assert f"flagged above {limit:.3g}" in drawn_texts(figure)
    assert f"this input: {score:.3g}" in drawn_texts(figure)
    left, right = figure.layout.xaxis.range
    place = math.log10(max(score, 1e-300)) if figure.layout.xaxis.type == "log" else score
    assert score == 0 or left <= place <= right


def test_bars_above_the_threshold_have_its_colour() -> None:
    scores = SCORES["even"]
    limit = threshold(scores, 0.2)
    usual, flagged, *_ = inspect.aggregate_on_histogram(scores, 11.0, limit, is_ood=False).data
    assert flagged.marker.color == faded(THRESHOLD, 0.75)
    assert max(usual.x) <= limit < min(flagged.x)


@pytest.mark.parametrize("first", np.linspace(0, 1, 11))
@pytest.mark.parametrize("second", np.linspace(0, 1, 11))
def test_no_line_runs_through_the_label_of_the_other(first: float, second: float) -> None:
    shares = (first, second)
    places = inspect.label_places(shares)
    assert places[0][1] != places[1][1]
    for own, other in ((0, 1), (1, 0)):
        side, height = places[own]
        room = shares[own] if side == "left" else 1 - shares[own]
        assert room >= 0.4
        points_at_other = (shares[other] < shares[own]) if side == "left" else (shares[other] > shares[own])
        beyond = (
            abs(shares[other] - shares[own]) > 0.2 + 1e-9
        )  # farther than a label reaches on a wide screen
        assert not points_at_other or beyond or height > places[other][1]


def test_an_infinite_threshold_is_not_drawn() -> None:
    figure = inspect.aggregate_on_histogram(SCORES["even"], 11.0, math.inf, is_ood=False)
    assert "flagged above" not in drawn_texts(figure)


@pytest.mark.parametrize("kind", SCORES)
def test_each_draw_is_a_point_and_the_chosen_one_stands_out(kind: str) -> None:
    scores = SCORES[kind][:7]
    points = inspect.draw_scores(scores, SCORES[kind], chosen=3).data[-1]
    assert len(points.x) == 7
    assert int(np.argmax(points.marker.size)) == 3
    above = scores > np.quantile(SCORES[kind], 0.95)
    assert list(points.marker.color) == [OOD if a else ID for a in above]


def test_p_figures_colour_by_the_strict_comparison_with_epsilon() -> None:
    p_values = np.array([0.04, 0.05, 0.06])
    for figure in (inspect.p_as_n_grows(p_values, 0.05, 2), inspect.p_over_seeds(p_values, [0, 1, 2], 0.05)):
        assert list(figure.data[0].marker.color) == [OOD, ID, ID]
        assert list(figure.data[0].y) == list(p_values)


@pytest.mark.parametrize(
    ("p_values", "corner"),
    [
        ([0.5, 0.5, 0.5, 0.5], ("right", "bottom")),
        ([0.5, 0.5, 0.5, 0.06], ("right", "top")),
        ([0.5, 0.5, 0.06, 0.049], ("left", "bottom")),
        ([0.07, 0.002, 0.049, 0.051], ("left", "top")),
    ],
)
def test_the_label_of_epsilon_goes_where_no_point_is(p_values: list[float], corner: tuple[str, str]) -> None:
    (label,) = inspect.p_as_n_grows(np.array(p_values), 0.05, 2).layout.annotations
    assert (label.xanchor, label.yanchor) == corner
    assert label.x == (1 if corner[0] == "right" else 0)


def test_a_finished_figure_has_axis_titles_and_no_background_of_its_own() -> None:
    figure = finish(go.Figure(), "time", "height")
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("time", "height")
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"


def test_with_room_given_the_browser_need_not_measure_and_draw_twice() -> None:
    measured, given = finish(go.Figure(), "time", "height"), finish(go.Figure(), "time", "height", left=60)
    assert measured.layout.xaxis.automargin is measured.layout.yaxis.automargin is True
    assert given.layout.xaxis.automargin is given.layout.yaxis.automargin is False
    assert given.layout.margin.l == 60
    assert given.layout.margin.b >= 13 + 8 + 13 + 8  # labels and title, with space around them


def test_finishing_keeps_what_a_figure_had_and_goes_over_all_its_axes() -> None:
    figure = make_subplots(2, 1)
    figure.update_layout(title="kept", xaxis2_range=[0, 3])
    finish(figure, "time", "height", layout={"yaxis": {"range": [0, 1]}})
    assert figure.layout.title.text == "kept"
    assert tuple(figure.layout.xaxis2.range) == (0, 3)
    assert figure.layout.xaxis2.title.text == "time"
    assert tuple(figure.layout.yaxis.range) == (0, 1)


def test_faded_keeps_the_colour() -> None:
    assert faded("#0072B2", 0.5) == "rgba(0, 114, 178, 0.5)"
