"""Arrows, turns and a clock (`simulate.arrows`): one reading of the model, and the luck that is left in n of them."""

import numpy as np
import plotly.graph_objects as go

from idecode_core.conformal import FloatArray
from idecode_core.plots.marks import WITHOUT_LEGEND, mark_epsilon
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
    layout = WITHOUT_LEGEND | {"yaxis": {"range": [0, 1.05]}}
    return finish(figure, "turns drawn for each arrow", "p-value of the same arrow", 320, layout)


def _outside(angle: float) -> str:
    """The text position that lies beyond the tip of an arrow with this angle, clockwise from up."""
    return ("top center", "middle right", "bottom center", "middle left")[round(angle % 360 / 90) % 4]
