"""Figures of the lessons: they say what their axes are, keep to the palette, and show the numbers given."""

import numpy as np
import plotly.graph_objects as go
import pytest

from idecode_core.plots.style import CALIBRATION, ID, OOD, TEXT, THRESHOLD, faded
from lessons import figures as plots
from lessons.breaking import break_it
from lessons.many import changing_stream, mixed_batch

SCORES = [3.0, 1.0, 7.0, 7.0, 9.0]
PALETTE = {CALIBRATION, ID, OOD, TEXT, THRESHOLD}


def figures() -> dict[str, go.Figure]:
    mixed = mixed_batch(generator=np.random.default_rng(0), repeats=10)
    changing = changing_stream(generator=np.random.default_rng(0), length=300, change_at=150)
    run = break_it("naive_fisher", generator=np.random.default_rng(0), repeats=5).broken
    watchers = {n: (w.log_path, w.log_threshold, w.alarms) for n, w in list(changing.watchers.items())[-2:]}
    return {
        "rank_line": plots.rank_line(SCORES, 7.0, x_title="score", flagged=True),
        "p_value_bars": plots.p_value_bars(np.arange(1, 21) / 20, k=19, epsilon=0.1),
        "uniformity": plots.uniformity(run.p_values, epsilon=0.05, top=2.0),
        "batch_ranks": plots.batch_ranks(
            mixed.p_values, mixed.is_ood, mixed.flagged[1], epsilon=0.05, q=0.1
        ),
        "stream_paths": plots.stream_paths(changing.p_values, watchers, change_at=150),
    }  # fmt: skip


def colours(value: object) -> set[str]:
    """All colours in a figure's traces and lines, as text."""
    if isinstance(value, dict):
        own = {v for key, v in value.items() if key in ("color", "fillcolor") and isinstance(v, str)}
        return own.union(*(colours(v) for v in value.values()))
    if isinstance(value, list | tuple):
        return set().union(*(colours(v) for v in value))
    return set()


def bare(colour: str) -> str:
    """The palette's colour behind a faded one."""
    return next((c for c in PALETTE if colour.startswith(faded(c, 1)[:-2])), colour)


@pytest.mark.parametrize("name", list(figures()))
def test_every_axis_has_a_title_and_every_colour_is_of_the_palette(name):
    figure = figures()[name]
    layout = figure.to_dict()["layout"]
    y_titles = [layout[key]["title"]["text"] for key in layout if key.startswith("yaxis")]
    x_titles = [layout[key]["title"]["text"] for key in layout if key.startswith("xaxis")]
    assert all(y_titles)
    assert x_titles[-1]  # panels share the axis at the bottom
    used = {
        bare(c)
        for c in colours([trace.to_plotly_json() for trace in figure.data] + list(layout.get("shapes", [])))
    }
    assert used
    assert used <= PALETTE


def test_friends_at_least_as_strange_stand_out_and_ties_are_among_them():
    figure = plots.rank_line(SCORES, 7.0, x_title="score")
    less, at_least = figure.data[0], figure.data[1]
    assert sorted(at_least.x) == [7.0, 7.0, 9.0]
    assert sorted(less.x) == [1.0, 3.0]
    assert less.marker.opacity < at_least.marker.opacity
    assert len(set(zip(at_least.x, at_least.y, strict=True))) == 3  # equal scores do not hide each other


@pytest.mark.parametrize(("flagged", "colour"), [(True, OOD), (False, ID)])
def test_a_newcomer_has_the_colour_of_its_verdict(flagged, colour):
    assert plots.rank_line(SCORES, 7.0, x_title="score", flagged=flagged).data[2].marker.color == colour


def test_the_arc_on_the_clock_is_the_error_even_across_twelve():
    arc = plots.clock(lean=20.0, turn=350.0, reading=0.0).data[-1]
    assert arc.line.color == OOD
    assert abs(arc.theta[-1] - arc.theta[0]) == pytest.approx(10.0)


def test_bars_of_all_places_add_up_and_those_below_epsilon_are_coloured_as_flagged():
    figure = plots.p_value_bars(np.repeat([0.05, 0.1, 1.0], [1, 2, 7]), k=19, epsilon=0.1)
    flagged, kept = figure.data
    assert (flagged.marker.color, kept.marker.color) == (OOD, ID)
    assert sum(flagged.y) == pytest.approx(0.1)
    assert sum(flagged.y) + sum(kept.y) == pytest.approx(1.0)


def test_uniform_p_values_give_bars_of_height_one():
    assert plots.uniformity((np.arange(2000) + 0.5) / 2000, epsilon=0.05, top=2.0).data[0].y == pytest.approx(
        1.0
    )


def test_filled_points_are_those_that_benjamini_hochberg_flags():
    mixed = mixed_batch(generator=np.random.default_rng(0), repeats=2)
    figure = plots.batch_ranks(mixed.p_values, mixed.is_ood, mixed.flagged[1], epsilon=0.05, q=0.1)
    filled = {trace.name: len(trace.x) for trace in figure.data if trace.marker.symbol == "circle"}
    assert filled["iD, flagged"] == np.count_nonzero(mixed.flagged[1] & ~mixed.is_ood)
    assert filled["OOD, flagged"] == np.count_nonzero(mixed.flagged[1] & mixed.is_ood)
    top = figure.layout.yaxis.range[1]
    assert all(
        p < top for trace in figure.data if trace.mode == "markers" for p in trace.y
    )  # none is cut in half


def test_stream_panels_show_paths_in_powers_of_ten_and_mark_each_alarm():
    changing = changing_stream(generator=np.random.default_rng(0), length=300, change_at=150)
    watcher = changing.watchers["simple jumper"]
    figure = plots.stream_paths(
        changing.p_values,
        {"jumper": (watcher.log_path, watcher.log_threshold, watcher.alarms)},
        change_at=150,
    )
    path, alarms = figure.data[2], figure.data[3]
    assert 10 ** np.asarray(path.y) == pytest.approx(np.exp(watcher.log_path))
    assert (np.asarray(alarms.x) - 1).tolist() == watcher.alarms.tolist()
    assert min(alarms.y) >= 2  # 1/alpha = 100
    assert figure.layout.yaxis2.ticktext[list(figure.layout.yaxis2.tickvals).index(0)] == "1"
