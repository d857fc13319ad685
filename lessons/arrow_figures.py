"""Figures of How it works: the clock of arrows, ranks and p-values."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from idecode_core import conformal
from idecode_core.conformal import FloatArray
from idecode_core.plots.marks import (
    WITHOUT_LEGEND,
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
    unordered = conformal.checked_scores(scores, "scores")
    order = np.argsort(unordered, kind="stable")
    s = unordered[order]
    turned = np.zeros(s.size) if angles is None else np.asarray(angles, dtype=np.float64)[order]
    heights = _stacked(s, width=max(float(s.max()), test_score, 1e-9) / 32)
    symbol, size = ("circle", 13) if angles is None else ("arrow", 24)
    figure = go.Figure()
    for name, here, opacity in (
        ("less strange than the newcomer", s < test_score, 0.45),
        ("at least as strange", s >= test_score, 1.0),
    ):
        look = {
            "symbol": symbol,
            "size": size,
            "color": CALIBRATION,
            "opacity": opacity,
            "angle": turned[here],
        }
        figure.add_trace(points(s[here], heights[here], name, "calibration point: %{x:.1f}", **look))
    right = max(float(s[-1]), test_score)
    at = "middle left" if test_score > 0.8 * right else "middle right"
    marker = {"symbol": symbol, "size": size + 9, "angle": test_angle}
    figure.add_trace(newcomer([test_score], [0.0], ": %{x:.1f}", flagged=flagged, at=at, **marker))
    figure.add_vline(x=test_score, line={"color": OOD if flagged else ID, "width": 1, "dash": "dot"})
    if threshold is not None and np.isfinite(threshold):
        mark_threshold(figure, threshold, "flagged beyond", on_left=threshold > 0.6 * right)
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
