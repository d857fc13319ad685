"""Figures of Break it and of Many and streams."""

import math
from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from idecode_core.conformal import FloatArray
from idecode_core.plots.marks import (
    WITHOUT_LEGEND,
    line,
    mark_epsilon,
    mark_threshold,
    mark_uniform,
    points,
)
from idecode_core.plots.style import CALIBRATION, ID, OOD, TEXT, THRESHOLD, finish


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
    mark_epsilon(figure, epsilon, dash="dash", on_left=True)
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
