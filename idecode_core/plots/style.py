"""One visual language for every figure, safe for colour-blind eyes (Okabe-Ito).

Figures are drawn with the colours below and a transparent background. A page then has them `repainted` in the colours of its
theme, where lines have a contrast of 3:1 with the page and text of 4.5:1.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
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
LARGE = 1.2
"""How much larger type is for a projector."""
VEIL = 0.75
"""Opacity of the page's colour behind a label."""
HEIGHT = 320
BELOW = 54  # pixels below the x-axis: one line of labels, powers of ten among them, and the title


@dataclass(frozen=True)
class Theme:
    """What the colours of a figure become on one kind of page."""

    background: str
    lines: Mapping[str, str]
    text: Mapping[str, str]


def _theme(background: str, *, lines: str, text: str) -> Theme:
    """From what each colour of the palette becomes, in its order."""
    palette = (ID, OOD, THRESHOLD, CALIBRATION, *OTHERS, TEXT)
    painted = (dict(zip(palette, colours.split(), strict=True)) for colours in (lines, text))
    return Theme(background, *painted)


LIGHT = _theme(
    "#FFFFFF",
    lines="#0072B2 #D55E00 #CC79A7 #8C8C8C #009E73 #B07D00 #7A5CC4 #6F6A00 #7B8794",
    text="#0072B2 #BF5000 #A8557F #6E6E6E #007F5C #8A6D00 #6A4BB5 #6F6A00 #5B6672",
)
DARK = _theme(
    "#10161D",
    lines="#56B4E9 #F08A3C #DE97BC #A6A6A6 #2BC79B #E6B422 #B7A6F0 #F0F08A #A9B4C0",
    text="#5CB8EE #F59A52 #DE97BC #B5B5B5 #2BC79B #E6B422 #B7A6F0 #F0F08A #C3CCD6",
)
FADED = re.compile(r"rgba\((\d+), (\d+), (\d+), ([\d.]+)\)")


def repainted(figure: go.Figure, theme: Theme, scale: float = 1.0) -> go.Figure:
    """A copy of a figure in the colours of a theme; type times `scale`, on the same height, so that it fits a screen. The figure itself stays as it is."""
    parts = figure.to_dict()
    parts.pop("frames", None)
    painted = {name: _painted(part, theme, scale, is_text=False) for name, part in parts.items()}
    layout = painted["layout"]
    for label in layout.get("annotations", ()):
        label.setdefault("bgcolor", faded(theme.background, VEIL))  # readable where it lies on points
    # Said of each axis by name: Streamlit's own look has a paler grey for axes, which gives way to nothing less.
    ink = {"color": theme.text[TEXT]}
    for name in [name for name in layout if name.startswith(("xaxis", "yaxis", "legend"))]:
        repaint = {"font": ink} if name.startswith("legend") else {"tickfont": ink, "title": {"font": ink}}
        layout[name] = _merged(repaint, layout[name])
    return go.Figure(painted["data"], layout, _validate=False)


def _painted(value: Any, theme: Theme, scale: float, *, is_text: bool) -> Any:
    if isinstance(value, str):
        return _colour(value, theme.text if is_text else theme.lines)
    if isinstance(value, list | tuple):
        return [_painted(part, theme, scale, is_text=is_text) for part in value]
    if not isinstance(value, dict):
        return value
    larger = scale != 1.0 and is_text and isinstance(value.get("size"), int | float)
    painted = {
        name: part
        if name == "template"
        else _painted(part, theme, scale, is_text=is_text or name.endswith("font"))
        for name, part in value.items()
    }
    if larger:
        painted["size"] = round(value["size"] * scale)
    return painted


def _colour(value: str, colours: Mapping[str, str]) -> str:
    """The theme's colour for one of the palette, faded or not; any other text as it is."""
    if value in colours:
        return colours[value]
    if match := FADED.fullmatch(value):
        red, green, blue, opacity = match.groups()
        plain = f"#{int(red):02X}{int(green):02X}{int(blue):02X}"
        return faded(colours[plain], float(opacity)) if plain in colours else value
    return value


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
