"""One visual language for every figure, safe for colour-blind eyes (Okabe-Ito).

Backgrounds are transparent and greys are half-transparent, so that a figure looks right on a light and on a dark page.
"""

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

ID = "#0072B2"
OOD = "#D55E00"
THRESHOLD = "#CC79A7"
CALIBRATION = "#8C8C8C"
OTHERS = ("#009E73", "#E69F00", "#56B4E9", "#F0E442")
"""For what is neither iD, OOD, threshold nor calibration, such as a third method."""

GRID = "rgba(128, 128, 128, 0.22)"
TEXT = "#7B8794"
"""Readable on white and on near-black; Streamlit replaces it with the page's own text colour."""
FONT = '"Source Sans", "Segoe UI", Helvetica, Arial, sans-serif'
HEIGHT = 320
BELOW = 54  # pixels below the x-axis: one line of labels, powers of ten among them, and the title


def faded(colour: str, opacity: float) -> str:
    """A colour of the palette with an opacity: "#0072B2", 0.2 -> "rgba(0, 114, 178, 0.2)"."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"


def finish(
    figure: go.Figure,
    x_title: str,
    y_title: str,
    height: int = HEIGHT,
    layout: Mapping[str, Any] | None = None,
    left: int | None = None,
) -> go.Figure:
    """Apply the shared look: axis titles, transparent background, thin grid, legend above, readable hover.

    What the figure has already stays where the look does not speak; `layout` goes over both. Giving it here is several
    times faster than `update_layout` afterwards, which matters where a figure follows a slider.

    `left` is the room for the labels of the y-axis, in pixels, where it is known. Otherwise the browser measures the
    labels, and to do so draws the figure twice.
    """
    before = figure.layout.to_plotly_json()
    before.pop("template", None)
    axes = {"xaxis", "yaxis"} | {name for name in before if name.startswith(("xaxis", "yaxis"))}
    look = {
        "template": "none",
        "height": height,
        "margin": {"l": left or 8, "r": 12, "t": 36, "b": BELOW if left else 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 13, "color": TEXT},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "xanchor": "left", "x": 0},
        "hoverlabel": {"font": {"size": 13, "family": FONT}},
        "hovermode": "closest",
        "bargap": 0.03,
        **{name: _axis(x_title if name.startswith("x") else y_title, left is None) for name in axes},
    }
    figure.layout = _merged(_merged(before, look), layout or {})
    return figure


def _axis(title: str, measured: bool) -> dict[str, Any]:
    return {
        "title": {"text": title, "standoff": 8},
        "gridcolor": GRID,
        "zeroline": False,
        "showline": True,
        "linecolor": GRID,
        "automargin": measured,
        "exponentformat": "power",
    }


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings laid over one another."""
    result = dict(below)
    for name, value in above.items():
        under = result.get(name)
        result[name] = (
            _merged(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
        )
    return result
