"""Figures of the lessons: the clock of arrows, ranks and p-values of How it works; rates of Break it; batches and streams."""

import math
from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from idecode_core import conformal
from idecode_core.conformal import FloatArray
from idecode_core.plots.marks import (
    WITHOUT_LEGEND,
    line,
    mark_epsilon,
    mark_threshold,
    mark_uniform,
    newcomer,
    points,
)
from idecode_core.plots.style import CALIBRATION, ID, OOD, TEXT, THRESHOLD, faded, finish


def clock(lean: float, turn: float, reading: float) -> go.Figure:
    """An arrow before and after its turn, what the clock reader M says the turn was, and how far off that is."""
    arc_end = turn + (reading - turn + 180) % 360 - 180
    figure = go.Figure()
    for name, angle, colour, width, radius in (
        ("x", lean, CALIBRATION, 3, 0.6),
        ("g(x)", lean + turn, ID, 5, 0.85),
    ):
        figure.add_scatterpolar(
            r=[0, radius],
            theta=[angle, angle],
            mode="lines+markers+text",
            name=name,
            text=["", f"<b>{name}</b>"],
            textposition=_outside(angle),
            textfont={"color": colour, "size": 15},
            line={"color": colour, "width": width},
            marker={
                "symbol": "arrow",
                "size": [0, 20],
                "angleref": "previous",
                "color": colour,
                "opacity": 1,
                "line": {"width": 0},
            },
            hovertemplate=f"{name} points to {angle % 360:.1f}°<extra></extra>",
        )
    for name, angle, dash in (("the turn g", turn, "dot"), ("M reads", reading, "solid")):
        figure.add_scatterpolar(
            r=[0, 1.12],
            theta=[angle, angle],
            mode="lines",
            name=name,
            line={"color": THRESHOLD, "width": 2, "dash": dash},
            hovertemplate=f"{name}: {angle % 360:.1f}°<extra></extra>",
        )
    figure.add_scatterpolar(
        r=np.full(30, 1.12),
        theta=np.linspace(turn, arc_end, 30),
        mode="lines",
        name="the error",
        line={"color": OOD, "width": 6},
        hoverinfo="skip",
    )
    layout = {
        "showlegend": False,
        "margin": {"l": 60, "r": 60, "t": 28, "b": 28},
        "polar": {
            "bgcolor": "rgba(0,0,0,0)",
            "radialaxis": {"visible": False, "range": [0, 1.2]},
            "angularaxis": {
                "direction": "clockwise",
                "rotation": 90,
                "tickvals": list(range(0, 360, 30)),
                "ticktext": [f"{hour or 12} h, {30 * hour}°" for hour in range(12)],
                "gridcolor": faded(CALIBRATION, 0.3),
                "linecolor": faded(CALIBRATION, 0.5),
                "color": TEXT,
            },
        },
    }
    return finish(figure, "", "", 340, layout)


def _outside(angle: float) -> str:
    """The text position that lies beyond the tip of an arrow with this angle, clockwise from up."""
    return ("top center", "middle right", "bottom center", "middle left")[round(angle % 360 / 90) % 4]


def rank_line(scores: ArrayLike, test_score: float, *, x_title: str, flagged: bool = False) -> go.Figure:
    """Calibration scores as dots on a line, the newcomer among them; those at least as strange stand out."""
    s = np.sort(conformal.checked_scores(scores, "scores"))
    right = max(float(s[-1]), test_score)
    heights = _stacked(s, width=max(right, 1e-9) / 32)
    figure = go.Figure()
    for name, here, opacity in (
        ("less strange than the newcomer", s < test_score, 0.45),
        ("at least as strange", s >= test_score, 1.0),
    ):
        look = {"size": 13, "color": CALIBRATION, "opacity": opacity}
        figure.add_trace(points(s[here], heights[here], name, "calibration point: %{x:.1f}", **look))
    at = "middle left" if test_score > 0.8 * right else "middle right"
    figure.add_trace(newcomer([test_score], [0.0], ": %{x:.1f}", flagged=flagged, at=at, size=22))
    figure.add_vline(x=test_score, line={"color": OOD if flagged else ID, "width": 1, "dash": "dot"})
    up = {"range": [-1.0, max(4.0, heights.max() + 0.8)], "showticklabels": False, "showgrid": False}
    return finish(figure, x_title, "calibration points", 270, WITHOUT_LEGEND | {"yaxis": up})


def p_value_bars(p_values: ArrayLike, *, k: int, epsilon: float) -> go.Figure:
    """How often each of the k+1 possible p-values came up; those below epsilon are false alarms."""
    p = conformal.checked_p_values(p_values)
    levels = np.arange(1, k + 2) / (k + 1)
    share = np.bincount(np.rint(p * (k + 1)).astype(np.int64), minlength=k + 2)[1:] / p.size
    figure = go.Figure()
    for name, here, colour in (("flagged", levels < epsilon, OOD), ("not flagged", levels >= epsilon, ID)):
        figure.add_bar(
            x=levels[here],
            y=share[here],
            name=name,
            marker_color=colour,
            width=0.8 / (k + 1),
            hovertemplate="p = %{x:.3g}: %{y:.1%} of the rounds<extra></extra>",
        )
    mark_uniform(figure, 1 / (k + 1))
    layout = {"xaxis": {"range": [0, 1 + 1 / (k + 1)]}, "yaxis": {"tickformat": ".0%", "rangemode": "tozero"}}
    return finish(figure, "p-value of the newcomer", "share of rounds", 270, layout)


def _stacked(sorted_values: FloatArray, width: float) -> FloatArray:
    """Heights 1, 2, ... for dots of a line that would lie on each other."""
    heights = np.ones(sorted_values.size)
    for i in range(1, sorted_values.size):
        taken = set(heights[:i][sorted_values[i] - sorted_values[:i] < width])
        heights[i] = next(h for h in range(1, sorted_values.size + 1) if h not in taken)
    return heights


def density(p_values: ArrayLike) -> FloatArray:
    """How often p-values fall into each of twenty equal bins, as a multiple of the uniform share. Shape (20,).

    A p-value of exactly 0.05 is not below 0.05: bins are closed on the left, the last one on both sides.

    >>> float(density([0.0, 0.01, 0.05, 0.99])[0])
    10.0
    """
    p = np.asarray(p_values, dtype=np.float64).ravel()
    return np.histogram(p, np.linspace(0, 1, 21))[0] / p.size * 20


def uniformity(p_values: ArrayLike, *, epsilon: float, top: float) -> go.Figure:
    """p-values of iD test points in twenty bins. Flat at 1 when the guarantee's assumptions hold and scores do not tie."""
    figure = go.Figure()
    figure.add_bar(
        x=np.arange(0.025, 1.0, 0.05),
        y=density(p_values),
        width=0.045,
        marker_color=ID,
        showlegend=False,
        hovertemplate="p around %{x:.3f}: %{y:.2f} times as many as if uniform<extra></extra>",
    )
    mark_uniform(figure, 1.0)
    mark_threshold(figure, epsilon, f"ε = {epsilon:g}")
    layout = WITHOUT_LEGEND | {"xaxis": {"range": [0, 1]}, "yaxis": {"range": [0, top]}}
    return finish(figure, "p-value of iD test points", "times the uniform share", 230, layout)


SHOWN = 40  # of the smallest p-values


def batch_ranks(
    p_values: ArrayLike, is_ood: ArrayLike, flagged: ArrayLike, *, epsilon: float, q: float
) -> go.Figure:
    """The smallest p-values of a batch in order, by truth; filled when flagged by Benjamini-Hochberg.

    A plain threshold flags below the horizontal line. Benjamini-Hochberg looks for the last point on or below the
    slanted line q i / m, and flags it and all before it.
    """
    order = np.argsort(np.asarray(p_values), kind="stable")
    shown = min(SHOWN, order.size)
    p, ood, flag = (np.asarray(values)[order][:shown] for values in (p_values, is_ood, flagged))
    rank = np.arange(1, shown + 1)
    top = max(2.5 * epsilon, 1.1 * q * shown / order.size, 0.02)
    inside = p < 0.98 * top  # a dot on the edge would be cut in half
    figure = go.Figure()
    for name, here, colour in (("iD", ~ood & inside, ID), ("OOD", ood & inside, OOD)):
        for state, filled in (("flagged", True), ("not flagged", False)):
            chosen = here & (flag == filled)
            look = {
                "size": 9,
                "color": colour,
                "symbol": "circle" if filled else "circle-open",
                "line": {"width": 2, "color": colour},
            }
            told = f"{name}, {state}: p = %{{y:.3g}}, place %{{x}}"
            figure.add_trace(points(rank[chosen], p[chosen], f"{name}, {state}", told, **look))
    slant = [0, q * shown / order.size]
    figure.add_trace(line([0, shown], slant, "q × place / size", color=THRESHOLD, width=2))
    mark_epsilon(figure, epsilon)
    layout = WITHOUT_LEGEND | {"xaxis": {"range": [0, shown + 1]}, "yaxis": {"range": [-0.004, top]}}
    return finish(figure, "place in the batch, strangest first", "p-value", 340, layout)


def stream_paths(
    p_values: ArrayLike,
    paths: Mapping[str, tuple[FloatArray, float, ArrayLike]],
    *,
    change_at: int,
) -> go.Figure:
    """p-values of a stream on top, below it each watcher's path on a log scale, its alarm line and its alarms.

    `paths` maps a watcher's name to (natural log of its path, natural log of its alarm line, times of its alarms).
    """
    p = np.asarray(p_values, dtype=np.float64)
    time = np.arange(1, p.size + 1)
    figure = make_subplots(
        rows=1 + len(paths),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.07,
        row_heights=[0.3, *[0.35] * len(paths)],
    )
    for name, here, colour in (("before", time <= change_at, ID), ("after", time > change_at, OOD)):
        look = {"size": 4, "color": colour, "opacity": 0.8}
        told = "point %{x}: p = %{y:.3f}"
        figure.add_trace(points(time[here], p[here], f"p-values {name} the change", told, **look), 1, 1)
    for row, (name, (log_path, log_limit, alarms)) in enumerate(paths.items(), start=2):
        times = np.asarray(alarms, dtype=np.int64)
        height = np.asarray(log_path) / math.log(10)
        told = f"{name} after point %{{x}}: %{{customdata:.3g}}"
        path = line(time, height, name, told, color=CALIBRATION, width=2)
        figure.add_trace(path | {"customdata": 10 ** np.clip(height, -300, 300)}, row, 1)
        look = {"symbol": "triangle-down", "size": 12, "color": OOD}
        alarm = f"alarm of {name}"
        figure.add_trace(
            points(time[times], height[times], alarm, f"{alarm} at point %{{x}}", **look), row, 1
        )
        figure.add_hline(y=log_limit / math.log(10), line={"color": THRESHOLD, "width": 2}, row=row, col=1)
    if 0 < change_at < p.size:
        figure.add_vline(x=change_at + 0.5, line={"color": TEXT, "width": 2, "dash": "dot"})
    finish(figure, "", "", 180 + 165 * len(paths), WITHOUT_LEGEND)
    figure.update_xaxes(range=[0, p.size + 1])
    figure.update_xaxes(title_text="point of the stream", row=1 + len(paths), col=1)
    figure.update_yaxes(title_text="p-value", range=[0, 1], row=1, col=1)
    for row, (name, (log_path, log_limit, _)) in enumerate(paths.items(), start=2):
        low, high = (
            float(v) / math.log(10) for v in (np.min(log_path, initial=0.0), max(np.max(log_path), log_limit))
        )
        ticks = _decades(low, high)
        figure.update_yaxes(
            title_text=name,
            tickvals=ticks,
            ticktext=["1" if t == 0 else f"10<sup>{t}</sup>" for t in ticks],
            range=[low - 0.3, high + 0.6],
            row=row,
            col=1,
        )
    return figure


def _decades(low: float, high: float) -> list[int]:
    """At most five powers of ten between two, 10^0 among them."""
    step = max(math.ceil((high - low) / 4), 1)
    first = -step * math.floor(-low / step) if low < 0 else 0
    return list(range(first, math.floor(high) + 1, step))
