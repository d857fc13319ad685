"""Why: the summands of a draw's score as bars that add up, where a picture is strange, which masks moved a sound's score."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idecode_core.plots.audio import seconds_and_hertz
from idecode_core.plots.marks import Trace
from idecode_core.plots.style import CALIBRATION, ID, OOD, finish

Floats = NDArray[np.float64]
DIVERGING = [[0.0, ID], [0.5, "rgba(255, 255, 255, 0)"], [1.0, OOD]]
"""Blue, nothing, orange: it lies over a picture, which shows through where nothing happens."""
ROW, FRAME = 40, 70  # pixels of a bar, and of what is around them


def score_parts(names: Sequence[str], values: Sequence[float]) -> go.Figure:
    """Each bar begins where the one above ends; the last one, from 0, is their sum."""
    ends = np.cumsum(values)
    starts = [0.0, *ends[:-1].tolist(), 0.0]
    lengths = [*values, float(ends[-1])]
    colours = [*(OOD if value > 0 else ID for value in values), CALIBRATION]
    labels = [*names, "<b>score of this draw</b>"]
    trace: Trace = {
        "type": "bar",
        "orientation": "h",
        "y": labels,
        "x": lengths,
        "base": starts,
        "marker": {"color": colours},
        "text": [f"{value:.3g}" for value in lengths],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertemplate": "%{y}: %{text}<extra></extra>",
        "showlegend": False,
    }
    low, high = min(0.0, *ends.tolist()), max(0.0, *ends.tolist())
    pad = 0.16 * (high - low) or 1.0
    layout = {
        "bargap": 0.25,
        "yaxis": {"autorange": "reversed", "showgrid": False, "type": "category"},
        "xaxis": {"range": [low - (pad if low < 0 else 0), high + pad], "zeroline": True},
        "margin": {"t": 8, "r": 24},
    }
    return finish(go.Figure([trace]), "Score, larger is stranger", "", ROW * len(labels) + FRAME, layout)


def strange_parts(pixels: NDArray[np.uint8], drops: Floats) -> go.Figure:
    """How far hiding each part of a picture (h, w, 3) lowers its score: `drops` (cells, cells) over the picture."""
    reach = float(np.abs(drops).max()) or 1.0
    size, cells = len(pixels), len(drops)
    places = (np.arange(cells) + 0.5) * size / cells - 0.5
    figure = go.Figure(
        [
            go.Image(z=pixels, hoverinfo="skip"),
            go.Heatmap(
                z=drops,
                x=places,
                y=places,
                colorscale=DIVERGING,
                zmin=-reach,
                zmax=reach,
                opacity=0.62,
                colorbar={"title": "falls by", "thickness": 10, "outlinewidth": 0},
                hovertemplate="hidden here, the score falls by %{z:.3g}<extra></extra>",
            ),
        ]
    )
    axis = {"visible": False, "showgrid": False, "range": [-0.5, size - 0.5]}
    layout = {
        "xaxis": {**axis, "constrain": "domain"},
        "yaxis": {**axis, "range": [size - 0.5, -0.5], "scaleanchor": "x", "constrain": "domain"},
        "margin": {"l": 0, "r": 0, "t": 8, "b": 8},
    }
    return finish(figure, "", "", 340, layout)


def moved_by_masks(effects: Floats, seconds_per_frame: float, hertz: NDArray[np.floating]) -> go.Figure:
    """Mean score with a cell hidden, less that with it shown: `effects` (bands, frames), NaN where it is not known."""
    reach = float(np.nanmax(np.abs(effects), initial=0.0)) or 1.0
    layout, x = seconds_and_hertz(effects.shape[1], seconds_per_frame, hertz)
    figure = go.Figure(
        go.Heatmap(
            z=effects.astype(np.float32),
            x=x,
            colorscale=[[0.0, ID], [0.5, "#E8E8E8"], [1.0, OOD]],
            zmin=-reach,
            zmax=reach,
            colorbar={"title": "rises by", "thickness": 10, "outlinewidth": 0},
            hovertemplate="%{x:.2f} s: hidden, the score rises by %{z:.3g}<extra></extra>",
            hoverongaps=False,
        )
    )
    return finish(figure, "Seconds", "Frequency (Hz)", 240, layout)
