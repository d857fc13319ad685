"""Marks that many figures share: lines and points, epsilon, a threshold, the height of uniform p-values, bands."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from numpy.typing import ArrayLike

from idecode_core.conformal import FloatArray
from idecode_core.plots.style import CALIBRATION, ID, OOD, THRESHOLD, faded

Trace = dict[str, Any]
WITHOUT_LEGEND: dict[str, Any] = {"showlegend": False, "margin": {"t": 14}}
"""The layout of figures that say what is what beside the marks or in their caption."""


def line(x: Any, y: Any, name: str = "", hover: str = "", **look: Any) -> Trace:
    """A line. Without a name it is not in the legend; without words to `hover` the pointer passes over it."""
    return _scatter(x, y, name, hover) | {"mode": "lines", "line": look}


def points(x: Any, y: Any, name: str = "", hover: str = "", **look: Any) -> Trace:
    """Markers, as `line`."""
    return _scatter(x, y, name, hover) | {"mode": "markers", "marker": look}


def _scatter(x: Any, y: Any, name: str, hover: str) -> Trace:
    listed = {"name": name} if name else {"showlegend": False}
    beside = "" if "<extra>" in hover else "<extra></extra>"  # Plotly's box with the name
    told = {"hovertemplate": hover + beside} if hover else {"hoverinfo": "skip"}
    return {"type": "scatter", "x": x, "y": y, **listed, **told}


def text_at(text: str, x: float, y: float, **look: Any) -> dict[str, Any]:
    """A text in the plot, without an arrow."""
    return {"text": text, "x": x, "y": y, "showarrow": False, **look}


def mark_epsilon(figure: go.Figure, epsilon: float) -> None:
    """A dashed horizontal line at epsilon, for figures with p-values on the vertical axis."""
    figure.add_hline(
        y=epsilon,
        line={"color": THRESHOLD, "width": 2, "dash": "dash"},
        annotation={"text": f"ε = {epsilon:g}", "font": {"color": THRESHOLD, "size": 13}, "xshift": 4},
        annotation_position="top left",
    )


def mark_threshold(figure: go.Figure, x: float, text: str) -> None:
    """A vertical line at a threshold."""
    figure.add_vline(
        x=x,
        line={"color": THRESHOLD, "width": 2},
        annotation={"text": text, "font": {"color": THRESHOLD, "size": 13}, "xshift": 4},
        annotation_position="top right",
    )


def mark_uniform(figure: go.Figure, height: float) -> None:
    """A dashed line at the height that all bars have when p-values are uniform."""
    figure.add_hline(y=height, line={"color": CALIBRATION, "width": 2, "dash": "dash"})


def threshold_line(
    *, x: float | None = None, y: float | None = None, dash: str = "solid", width: float = 2, axis: str = ""
) -> dict[str, Any]:
    """A line in the threshold's colour across the whole plot, at x or at y; `axis` is "2" for a second column."""
    across = {"type": "line", "line": {"color": THRESHOLD, "dash": dash, "width": width}}
    if y is not None:
        return {**across, "xref": f"x{axis} domain", "x0": 0, "x1": 1, "y0": y, "y1": y}
    return {**across, "xref": f"x{axis}", "yref": f"y{axis} domain", "x0": x, "x1": x, "y0": 0, "y1": 1}


def band(x: ArrayLike, low: ArrayLike, high: ArrayLike, fillcolor: str, **named: Any) -> go.Scatter:
    """The area between two curves: along the upper one, and back along the lower one."""
    there, under, over = (list(map(float, values)) for values in (x, low, high))  # type: ignore[arg-type]
    return go.Scatter(
        x=there + there[::-1],
        y=over + under[::-1],
        fill="toself",
        fillcolor=fillcolor,
        line={"width": 0},
        hoverinfo="skip",
        **named,
    )


def calibration_band(ends: Sequence[float], heights: FloatArray, name: str, median: str) -> list[Trace]:
    """The middle 90 % of the calibration set from one end to the other: `heights` are its 5, 50 and 95 % quantiles."""
    low, middle, high = heights.tolist()
    line = {"type": "scatter", "x": list(ends), "mode": "lines", "hoverinfo": "skip"}
    edge = {**line, "line": {"width": 0}}
    return [
        {**edge, "y": [high, high], "showlegend": False},
        {**edge, "y": [low, low], "fill": "tonexty", "fillcolor": faded(CALIBRATION, 0.22), "name": name},
        {**line, "y": [middle, middle], "line": {"color": CALIBRATION, "width": 1.5}, "name": median},
    ]


def newcomer(
    x: Sequence[float], y: Sequence[float], hover: str, *, flagged: bool, at: str, **marker: Any
) -> Trace:
    """The point that is judged, in the colour of its verdict, with its name `at` one side of it."""
    colour = OOD if flagged else ID
    return points(x, y, "newcomer", f"newcomer{hover}", **{"size": 15, "color": colour, **marker}) | {
        "mode": "markers+text",
        "text": ["  newcomer  "],
        "textposition": at,
        "textfont": {"color": colour, "size": 14},
    }
