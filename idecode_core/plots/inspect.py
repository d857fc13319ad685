"""One input under the microscope: its aggregate, its single draws, what n and chance do to its p-value, and why it scores so: the
summands of a draw as bars that add up, and where a picture is strange.

These figures follow sliders, so each is put together in one go, which is what Plotly does fastest.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idecode_core.plots.marks import Trace, calibration_band, line, points, text_at, threshold_line
from idecode_core.plots.style import CALIBRATION, ID, OOD, THRESHOLD, faded, finish

Floats = NDArray[np.float64]
BINS = 60
LEFT = 64  # pixels: four or five digits and the title
DIVERGING = [[0.0, ID], [0.5, "rgba(255, 255, 255, 0)"], [1.0, OOD]]
"""Blue, nothing, orange: it lies over a picture, which shows through where nothing happens."""
ROW, FRAME = 40, 70  # pixels of a bar, and of what is around them
LABEL, DOT = (0.3, 0.12), 0.03  # width and height of epsilon's label, and half a dot, as shares of the plot


def aggregate_on_histogram(
    calibration_scores: Floats, score: float, threshold: float, *, is_ood: bool, height: int = 320
) -> go.Figure:
    """F(V(x)) among the calibration set's, with the score above which inputs are flagged at epsilon."""
    shown_score = score
    floor = log_floor(np.append(calibration_scores, score))
    logarithmic = floor is not None
    if floor is not None:
        calibration_scores, score = np.maximum(calibration_scores, floor), max(score, floor)
    low, high = min(calibration_scores.min(), score), max(calibration_scores.max(), score)
    edges = np.geomspace(low, high, BINS + 1) if logarithmic else np.linspace(low, high, BINS + 1)
    if low == high:
        edges = np.array([low - 0.5, high + 0.5])
    counts, _ = np.histogram(calibration_scores, edges)
    middles = (edges[:-1] + edges[1:]) / 2  # as bars have them, on a logarithmic axis too
    traces = []
    for above, colour in ((False, faded(CALIBRATION, 0.65)), (True, faded(THRESHOLD, 0.75))):
        here = (middles > threshold) == above
        traces.append(
            {
                "type": "bar",
                "x": middles[here],
                "y": counts[here],
                "width": np.diff(edges)[here],
                "marker": {"color": colour, "line": {"width": 0}},
                "customdata": np.stack([edges[:-1], edges[1:]], axis=1)[here],
                "hovertemplate": "%{y} calibration points<br>score %{customdata[0]:.3g} to %{customdata[1]:.3g}<extra></extra>",
            }
        )
    left, right = _padded_range(low, high, logarithmic)
    top = float(counts.max())
    lines = [
        (threshold, THRESHOLD, "dash", f"flagged above {threshold:.3g}"),
        (score, OOD if is_ood else ID, "solid", f"this input: {shown_score:.3g}"),
    ]
    lines = [line for line in lines if math.isfinite(line[0])]
    shares = [
        ((math.log10(max(line[0], floor)) if floor is not None else line[0]) - left) / (right - left)
        for line in lines
    ]
    for (x, colour, dash, text), (side, height_share) in zip(lines, label_places(shares), strict=True):
        traces.append(_upright(x, height_share * top, colour, dash, text, side))
    layout = {
        "bargap": 0,
        "barmode": "overlay",
        "showlegend": False,
        "xaxis": {"type": "log" if logarithmic else "linear", "range": [left, right], "showgrid": False},
        "yaxis": {"range": [0, 1.36 * top]},
    }
    title = "F(V), larger is stranger"
    return finish(go.Figure(traces), title, "Calibration points", height, layout, LEFT)


def label_places(shares: Sequence[float]) -> list[tuple[str, float]]:
    """For uprights at these shares of the axis, one or two: the side of each label, and the height of each line.

    Labels point away from each other where there is room at the outside. One that must point at the other line goes above
    its end, so that no line runs through a label.

    >>> label_places([0.9, 0.5])  # the first has no room at its right: it points left, above the second
    [('left', 1.28), ('left', 1.12)]
    """
    if len(shares) == 1:
        return [("left" if shares[0] > 0.5 else "right", 1.28)]
    first, second = sorted(range(2), key=lambda i: shares[i])  # from left to right
    places = {
        first: "left" if shares[first] >= 0.4 else "right",
        second: "right" if shares[second] <= 0.6 else "left",
    }
    taller = second if places[second] == "left" else first
    return [(places[i], 1.28 if i == taller else 1.12) for i in range(2)]


def draw_scores(
    scores: Floats, calibration_base_scores: Floats, chosen: int | None = None, height: int = 300
) -> go.Figure:
    """Base scores of single draws over the band that holds the middle 90 % of the calibration set's."""
    (low, _, high), (shown,), around, layout = over_calibration([scores], calibration_base_scores)
    is_chosen = np.arange(len(scores)) == chosen
    told = "draw %{x}<br>score %{y:.3g}<extra>click to enlarge</extra>"
    look = dots(scores > high, is_chosen, 11, 18)
    draws = points(np.arange(1, len(scores) + 1), shown, hover=told, **look) | {
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
    }
    if layout["yaxis"]["type"] == "log" and 1e2 < max(high, shown.max()) / min(low, shown.min()) < 1e5:
        layout["yaxis"]["dtick"] = 1  # powers of ten only; over more of them Plotly leaves some out by itself
    return finish(go.Figure([*around, draws]), "Transform", "Score of one transform", height, layout, LEFT)


def over_calibration(
    inputs: Sequence[Floats], calibration_base_scores: Floats
) -> tuple[Floats, list[Floats], list[Trace], dict[str, Any]]:
    """What scores of single draws, (n,) of each input, are held against.

    The calibration set's 5, 50 and 95 % quantiles, the scores as they are drawn (zeros of a logarithmic axis at its floor),
    the band of the middle 90 %, and the layout.
    """
    quantiles = np.quantile(calibration_base_scores, [0.05, 0.5, 0.95])
    floor = log_floor(np.concatenate([*inputs, quantiles]))
    if floor is not None:
        quantiles[0] = max(quantiles[0], floor)
        inputs = [np.maximum(scores, floor) for scores in inputs]
    n = len(inputs[0])
    ends = [0.4, n + 0.6]
    layout = {
        "xaxis": {"range": ends, "showgrid": False, **({"dtick": 1} if n <= 20 else {})},
        "yaxis": {"type": "linear" if floor is None else "log"},
    }
    around = calibration_band(ends, quantiles, "middle 90 % of calibration", "calibration median")
    return quantiles, list(inputs), around, layout


def p_as_n_grows(p_values: Floats, epsilon: float, n: int) -> go.Figure:
    """The p-value with the first 1, 2, ..., n_max draws, on a logarithmic axis, and epsilon."""
    counts = np.arange(1, len(p_values) + 1)
    marker = dots(p_values < epsilon, counts == n, 8, 15)
    trace = p_line(counts, p_values, "n = %{x}<br>p = %{y:.3g}", marker)
    layout = p_layout(p_values, epsilon) | {"xaxis": {"range": [0.4, len(p_values) + 0.6]}}
    return finish(go.Figure([trace]), "Number of transforms, n", "p-value", 280, layout, LEFT)


def p_line(x: Any, p_values: Floats, hover: str, marker: Trace) -> Trace:
    """p-values as dots with a thin line from one to the next."""
    thin = line(x, p_values, hover=hover, color=faded(CALIBRATION, 0.8), width=1.5)
    return thin | {"mode": "lines+markers", "marker": marker}


def p_over_seeds(p_values: Floats, seeds: Sequence[int], epsilon: float, height: int = 280) -> go.Figure:
    """The p-value of one input with freshly drawn transforms, one dot per seed; the first seed is the one on the page."""
    marker = dots(p_values < epsilon, np.arange(len(p_values)) == 0, 10, 15)
    trace = points([str(seed) for seed in seeds], p_values, hover="seed %{x}<br>p = %{y:.3g}", **marker)
    layout = p_layout(p_values, epsilon) | {"xaxis": {"type": "category", "showgrid": False}}
    return finish(go.Figure([trace]), "Seed of the draw", "p-value", height, layout, LEFT)


def log_floor(values: Floats) -> float | None:
    """The smallest positive value when only a logarithmic axis shows them all, else None; zeros are drawn there."""
    positive = values[values > 0]
    if values.min() < 0 or positive.size < values.size / 2:
        return None
    spread = positive.max() / np.quantile(positive, 0.05)
    return float(positive.min()) if spread > 50 else None


def _padded_range(low: float, high: float, logarithmic: bool) -> tuple[float, float]:
    """The range of an axis, in its own units (powers of ten on a logarithmic one)."""
    left, right = (math.log10(low), math.log10(high)) if logarithmic else (low, high)
    pad = 0.04 * (right - left) or 0.5
    return left - pad, right + pad


def _upright(x: float, top: float, colour: str, dash: str, text: str, side: str) -> Trace:
    return line([x, x], [0, top], hover=text, color=colour, width=3, dash=dash) | {
        "mode": "lines+text",
        "text": ["", f"<b>{text}</b>  " if side == "left" else f"  <b>{text}</b>"],
        "textposition": f"middle {side}",
        "textfont": {"color": colour, "size": 13},
    }


def dots(strange: NDArray[np.bool_], marked: NDArray[np.bool_], size: int, marked_size: int) -> Trace:
    """Markers in the colours of OOD and iD; the marked one is larger and has the threshold's colour around it."""
    return {
        "color": [OOD if dot else ID for dot in strange],
        "size": np.where(marked, marked_size, size),
        "opacity": 1,
        "line": {"color": THRESHOLD, "width": np.where(marked, 3, 0)},
    }


def free_corner(p_values: Floats, epsilon: float, bottom: float, top: float) -> tuple[str, str]:
    """Which end of the line at epsilon, and which side of it, has the fewest points in the way of a label: anchors of Plotly.

    `p_values` run from left to right, `bottom` and `top` are the ends of the axis in powers of ten.

    >>> free_corner(np.array([0.5, 0.5, 0.06, 0.06]), 0.05, -2, 0)
    ('right', 'top')
    """
    height, level = top - bottom, math.log10(epsilon)
    above = (np.log10(p_values) - level) / height  # in heights of the plot
    end = max(round(LABEL[0] * len(above)), 1)
    crowds = {}
    for x, there in (("right", above[-end:]), ("left", above[:end])):
        for y, sign in (("bottom", 1), ("top", -1)):
            room = (level - bottom if y == "top" else top - level) / height
            in_the_way = (sign * there > -DOT) & (sign * there < LABEL[1] + DOT)
            crowds[x, y] = int(in_the_way.sum()) + (len(above) if room < LABEL[1] else 0)
    return min(crowds, key=lambda corner: crowds[corner])


def p_layout(p_values: Floats, epsilon: float) -> dict[str, Any]:
    """A logarithmic axis for p-values, with epsilon drawn across."""
    height = math.log10(epsilon)
    bottom, top = min(math.log10(float(p_values.min())), height) - 0.25, 0.12
    x, y = free_corner(p_values, epsilon, bottom, top)
    look = {"xref": "paper", "xanchor": x, "yanchor": y, "font": {"color": THRESHOLD, "size": 13}}
    return {
        "yaxis": {"type": "log", "range": [bottom, top], "dtick": 1, "tickformat": "~g"},
        "shapes": [threshold_line(y=epsilon, dash="dash")],
        "annotations": [text_at(f"<b>epsilon = {epsilon:g}</b>", float(x == "right"), height, **look)],
    }


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
