"""Figures of 'Break it' and 'Many and streams': what happens over many repeats, batches and streams."""

import math
from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from idecode_core.conformal import FloatArray
from idecode_core.plots.style import CALIBRATION, ID, OOD, TEXT, THRESHOLD, faded, finish
from idecode_core.plots.teaching_marks import mark_threshold, mark_uniform, without_legend


def uniformity(p_values: ArrayLike, *, epsilon: float, top: float) -> go.Figure:
    """p-values of iD test points in twenty bins. Flat at 1 when the guarantee's assumptions hold."""
    p = np.asarray(p_values, dtype=np.float64).ravel()
    edges = np.linspace(0, 1, 21)
    # A p-value of exactly 0.05 is not below 0.05: bins are closed on the left, the last one on both sides.
    density = np.histogram(p, edges)[0] / p.size * 20
    figure = go.Figure()
    figure.add_bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=density,
        width=0.045,
        marker_color=ID,
        showlegend=False,
        hovertemplate="p around %{x:.3f}: %{y:.2f} times as many as if uniform<extra></extra>",
    )
    mark_uniform(figure, 1.0)
    mark_threshold(figure, epsilon, f"ε = {epsilon:g}")
    finish(figure, "p-value of iD test points", "times the uniform share", height=230)
    without_legend(figure)
    figure.update_xaxes(range=[0, 1])
    figure.update_yaxes(range=[0, top])
    return figure


def rate_curve(epsilons: ArrayLike, rates: FloatArray, *, epsilon: float, top: float) -> go.Figure:
    """The false detection rate (repeats, epsilons) against epsilon: mean, 5-95 % of the repeats, and the bound."""
    x = np.asarray(epsilons, dtype=np.float64)
    low, high = np.quantile(rates, [0.05, 0.95], axis=0)
    figure = go.Figure()
    figure.add_scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        fill="toself",
        fillcolor=faded(ID, 0.18),
        line={"width": 0},
        name="90 % of the repeats",
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=x,
        y=rates.mean(axis=0),
        mode="lines",
        line={"color": ID, "width": 3},
        name="mean",
        hovertemplate="ε = %{x:.2f}: %{y:.1%} of iD points flagged<extra></extra>",
    )
    figure.add_scatter(
        x=[0, x[-1]],
        y=[0, x[-1]],
        mode="lines",
        line={"color": THRESHOLD, "width": 2, "dash": "dash"},
        name="the bound, ε",
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=[epsilon],
        y=[np.interp(epsilon, x, rates.mean(axis=0))],
        mode="markers",
        marker={"size": 11, "color": ID},
        showlegend=False,
        hovertemplate="at ε = %{x:g}: %{y:.1%}<extra></extra>",
    )
    finish(figure, "ε", "false detection rate", height=230)
    without_legend(figure)
    figure.update_xaxes(range=[0, x[-1]])
    figure.update_yaxes(range=[0, top], tickformat=".0%")
    return figure


def batch_ranks(
    p_values: ArrayLike, is_ood: ArrayLike, flagged: ArrayLike, *, epsilon: float, q: float, shown: int = 40
) -> go.Figure:
    """The smallest p-values of a batch in order, by truth; filled when flagged by Benjamini-Hochberg.

    A plain threshold flags below the horizontal line. Benjamini-Hochberg looks for the last point on or below the
    slanted line q i / m, and flags it and all before it.
    """
    order = np.argsort(np.asarray(p_values), kind="stable")
    shown = min(shown, order.size)
    p, ood, flag = (np.asarray(values)[order][:shown] for values in (p_values, is_ood, flagged))
    rank = np.arange(1, shown + 1)
    top = max(2.5 * epsilon, 1.1 * q * shown / order.size, 0.02)
    inside = p < 0.98 * top  # a dot on the edge would be cut in half
    figure = go.Figure()
    for name, here, colour in (("iD", ~ood & inside, ID), ("OOD", ood & inside, OOD)):
        for state, filled in (("flagged", True), ("not flagged", False)):
            chosen = here & (flag == filled)
            figure.add_scatter(
                x=rank[chosen],
                y=p[chosen],
                mode="markers",
                name=f"{name}, {state}",
                marker={
                    "size": 9,
                    "color": colour,
                    "symbol": "circle" if filled else "circle-open",
                    "line": {"width": 2, "color": colour},
                },
                hovertemplate=f"{name}, {state}: p = %{{y:.3g}}, place %{{x}}<extra></extra>",
            )
    figure.add_scatter(
        x=[0, shown],
        y=[0, q * shown / order.size],
        mode="lines",
        line={"color": THRESHOLD, "width": 2},
        name="q × place / size",
        hoverinfo="skip",
    )
    figure.add_hline(
        y=epsilon,
        line={"color": THRESHOLD, "width": 2, "dash": "dash"},
        annotation={"text": f"ε = {epsilon:g}", "font": {"color": THRESHOLD, "size": 13}},
        annotation_position="top left",
    )
    finish(figure, "place in the batch, strangest first", "p-value", height=340)
    without_legend(figure)
    figure.update_xaxes(range=[0, shown + 1])
    figure.update_yaxes(range=[-0.004, top])
    return figure


def rule_boxes(
    values_by_rule: Mapping[str, FloatArray], *, y_title: str, limit: float | None = None
) -> go.Figure:
    """A proportion over many batches, a box for each rule, its mean as a diamond, and the limit it should keep to."""
    figure = go.Figure()
    for rule, values in values_by_rule.items():
        figure.add_box(
            y=values,
            name=rule.replace(" ", "<br>").replace("-", "-<br>"),
            boxpoints=False,
            line={"color": CALIBRATION},
            fillcolor=faded(CALIBRATION, 0.2),
            showlegend=False,
            hoverinfo="y",
        )
        figure.add_scatter(
            x=[rule.replace(" ", "<br>").replace("-", "-<br>")],
            y=[np.mean(values)],
            mode="markers",
            marker={"symbol": "diamond", "size": 13, "color": TEXT},
            showlegend=False,
            hovertemplate=f"{rule}: mean %{{y:.1%}}<extra></extra>",
        )
    if limit is not None:
        figure.add_hline(
            y=limit,
            line={"color": THRESHOLD, "width": 2},
            annotation={"text": f"q = {limit:g}", "font": {"color": THRESHOLD, "size": 13}, "xshift": 4},
            annotation_position="top left",
        )
    finish(figure, "rule", y_title, height=300)
    without_legend(figure)
    figure.update_yaxes(range=[-0.03, 1.03], tickformat=".0%")
    return figure


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
        figure.add_scatter(
            x=time[here],
            y=p[here],
            mode="markers",
            marker={"size": 4, "color": colour, "opacity": 0.8},
            name=f"p-values {name} the change",
            hovertemplate="point %{x}: p = %{y:.3f}<extra></extra>",
            row=1,
            col=1,
        )
    for row, (name, (log_path, log_limit, alarms)) in enumerate(paths.items(), start=2):
        times = np.asarray(alarms, dtype=np.int64)
        height = np.asarray(log_path) / math.log(10)
        figure.add_scatter(
            x=time,
            y=height,
            mode="lines",
            line={"color": CALIBRATION, "width": 2},
            name=name,
            customdata=10 ** np.clip(height, -300, 300),
            hovertemplate=f"{name} after point %{{x}}: %{{customdata:.3g}}<extra></extra>",
            row=row,
            col=1,
        )
        figure.add_scatter(
            x=time[times],
            y=height[times],
            mode="markers",
            marker={"symbol": "triangle-down", "size": 12, "color": OOD},
            name=f"alarm of {name}",
            hovertemplate=f"alarm of {name} at point %{{x}}<extra></extra>",
            row=row,
            col=1,
        )
        figure.add_hline(y=log_limit / math.log(10), line={"color": THRESHOLD, "width": 2}, row=row, col=1)
    if 0 < change_at < p.size:
        figure.add_vline(x=change_at + 0.5, line={"color": TEXT, "width": 2, "dash": "dot"})
    finish(figure, "", "", height=180 + 165 * len(paths))
    without_legend(figure)
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
