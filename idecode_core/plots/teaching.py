"""Figures of 'How it works': ranks, p-values, a clock, and the playground."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from idecode_core import conformal
from idecode_core.conformal import FloatArray
from idecode_core.plots.style import CALIBRATION, ID, OOD, TEXT, THRESHOLD, faded, finish
from idecode_core.plots.teaching_marks import mark_epsilon, mark_threshold, mark_uniform, without_legend


def rank_line(
    scores: ArrayLike,
    test_score: float,
    *,
    x_title: str,
    flagged: bool = False,
    threshold: float | None = None,
    angles: ArrayLike | None = None,
    test_angle: float = 0.0,
) -> go.Figure:
    """Calibration scores as dots on a line, the newcomer among them; those at least as strange stand out.

    With `angles` (degrees, clockwise from up) each dot is an arrow.
    """
    s = np.sort(conformal.checked_scores(scores, "scores"))
    order = np.argsort(conformal.checked_scores(scores, "scores"), kind="stable")
    turned = np.zeros(s.size) if angles is None else np.asarray(angles, dtype=np.float64)[order]
    heights = _stacked(s, width=max(float(s.max()), test_score, 1e-9) / 32)
    symbol, size = ("circle", 13) if angles is None else ("arrow", 24)
    figure = go.Figure()
    for name, here, opacity in (
        ("less strange than the newcomer", s < test_score, 0.45),
        ("at least as strange", s >= test_score, 1.0),
    ):
        figure.add_scatter(
            x=s[here],
            y=heights[here],
            mode="markers",
            name=name,
            marker={
                "symbol": symbol,
                "size": size,
                "color": CALIBRATION,
                "opacity": opacity,
                "angle": turned[here],
            },
            hovertemplate="calibration point: %{x:.1f}<extra></extra>",
        )
    colour = OOD if flagged else ID
    right = max(float(s[-1]), test_score)
    figure.add_scatter(
        x=[test_score],
        y=[0.0],
        mode="markers+text",
        name="newcomer",
        text="  newcomer  ",
        textposition="middle left" if test_score > 0.8 * right else "middle right",
        textfont={"color": colour, "size": 14},
        marker={"symbol": symbol, "size": size + 9, "color": colour, "angle": test_angle},
        hovertemplate="newcomer: %{x:.1f}<extra></extra>",
    )
    figure.add_vline(x=test_score, line={"color": colour, "width": 1, "dash": "dot"})
    if threshold is not None and np.isfinite(threshold):
        mark_threshold(figure, threshold, "flagged beyond", on_left=threshold > 0.6 * right)
    finish(figure, x_title, "calibration points", height=270)
    without_legend(figure)
    figure.update_yaxes(range=[-1.0, max(4.0, heights.max() + 0.8)], showticklabels=False, showgrid=False)
    return figure


def staircase(
    scores: ArrayLike, test_score: float, *, x_title: str, epsilon: float | None = None
) -> go.Figure:
    """The p-value (Eq. 5) of every score that a newcomer could have, and of the one it has."""
    s = np.sort(conformal.checked_scores(scores, "scores"))
    low, high = min(0.0, float(s[0]), test_score), max(float(s[-1]), test_score) * 1.06 + 1e-9
    corners = np.concatenate([[low], s, [high]])
    p = float(conformal.p_values(s, [test_score])[0])
    flagged = epsilon is not None and p < epsilon
    figure = go.Figure()
    figure.add_scatter(
        x=corners,
        y=conformal.p_values(s, corners),
        mode="lines",
        line={"color": CALIBRATION, "width": 2, "shape": "vh"},
        name="p-value of a newcomer with this score",
        hovertemplate="score %{x:.1f}: p = %{y:.3f}<extra></extra>",
    )
    figure.add_scatter(
        x=[test_score],
        y=[p],
        mode="markers+text",
        text="newcomer",
        textposition="top left" if test_score > 0.8 * high else "top right",
        textfont={"color": OOD if flagged else ID, "size": 14},
        marker={"size": 15, "color": OOD if flagged else ID},
        name="newcomer",
        hovertemplate="newcomer: p = %{y:.3f}<extra></extra>",
    )
    if epsilon is not None:
        mark_epsilon(figure, epsilon)
    finish(figure, x_title, "p-value", height=290)
    without_legend(figure)
    figure.update_yaxes(range=[0, 1.05])
    return figure


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
    finish(figure, "p-value of the newcomer", "share of rounds", height=270)
    figure.update_xaxes(range=[0, 1 + 1 / (k + 1)])
    figure.update_yaxes(tickformat=".0%", rangemode="tozero")
    return figure


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
    finish(figure, "", "", height=340)
    figure.update_layout(
        showlegend=False,
        margin={"l": 60, "r": 60, "t": 28, "b": 28},
        polar={
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
    )
    return figure


def p_value_spread(p_values_by_n: dict[int, FloatArray], *, epsilon: float) -> go.Figure:
    """The p-values of one and the same point under fresh draws, for several n: the luck of the draw wears off."""
    figure = go.Figure()
    for n, p in p_values_by_n.items():
        figure.add_box(
            y=p,
            name=f"n = {n}",
            marker={"color": ID, "size": 4},
            line={"color": ID},
            fillcolor=faded(ID, 0.15),
            boxpoints="all",
            jitter=0.6,
            pointpos=0,
            showlegend=False,
            hovertemplate="p = %{y:.3g}<extra></extra>",
        )
    mark_epsilon(figure, epsilon)
    finish(figure, "turns drawn for each arrow", "p-value of the same arrow", height=320)
    without_legend(figure)
    figure.update_yaxes(range=[0, 1.05])
    return figure


def playground(
    calibration_set: ArrayLike, x: float, line: FloatArray, p_on_line: FloatArray, *, epsilon: float
) -> go.Figure:
    """The p-value of a newcomer at every place of a line, over the calibration points, and the newcomer at x."""
    points = conformal.checked_scores(calibration_set, "calibration_set")
    p = float(np.interp(x, line, p_on_line))
    flagged = p < epsilon
    figure = go.Figure()
    figure.add_scatter(
        x=line,
        y=np.where(p_on_line < epsilon, 1.05, 0.0),
        mode="none",
        fill="tozeroy",
        fillcolor=faded(OOD, 0.13),
        name="flagged here",
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=line,
        y=p_on_line,
        mode="lines",
        line={"color": CALIBRATION, "width": 2},
        name="p-value at this place",
        hovertemplate="at %{x:.1f}: p = %{y:.3g}<extra></extra>",
    )
    figure.add_scatter(
        x=points,
        y=np.full(points.size, -0.07),
        mode="markers",
        marker={"symbol": "line-ns-open", "size": 16, "color": CALIBRATION, "line": {"width": 2}},
        name="calibration points",
        hovertemplate="calibration point at %{x:.1f}<extra></extra>",
    )
    colour = OOD if flagged else ID
    figure.add_scatter(
        x=[x, x],
        y=[-0.19, p],
        mode="lines+markers+text",
        text=["  newcomer  ", ""],
        textposition="middle left" if x > 0.8 * line[-1] else "middle right",
        textfont={"color": colour, "size": 14},
        line={"color": colour, "width": 2, "dash": "dot"},
        marker={"size": 15, "color": colour},
        name="newcomer",
        hovertemplate="newcomer at %{x:.1f}<extra></extra>",
    )
    mark_epsilon(figure, epsilon)
    finish(figure, "place on the line", "p-value", height=330)
    without_legend(figure)
    figure.update_yaxes(range=[-0.26, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    figure.update_xaxes(range=[line[0], line[-1]], showgrid=False)
    return figure


def _stacked(sorted_values: FloatArray, width: float) -> FloatArray:
    """Heights 1, 2, ... for dots of a line that would lie on each other."""
    heights = np.ones(sorted_values.size)
    for i in range(1, sorted_values.size):
        taken = set(heights[:i][sorted_values[i] - sorted_values[:i] < width])
        heights[i] = next(h for h in range(1, sorted_values.size + 1) if h not in taken)
    return heights


def _outside(angle: float) -> str:
    """The text position that lies beyond the tip of an arrow with this angle, clockwise from up."""
    return ("top center", "middle right", "bottom center", "middle left")[round(angle % 360 / 90) % 4]
