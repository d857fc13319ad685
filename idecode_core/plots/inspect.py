"""One input under the microscope: its aggregate, its single draws, and what n and chance do to its p-value."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idecode_core.plots.style import CALIBRATION, ID, OOD, THRESHOLD, faded, finish

Floats = NDArray[np.float64]
BINS = 60


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
    middles = np.sqrt(edges[:-1] * edges[1:]) if logarithmic else (edges[:-1] + edges[1:]) / 2
    flagged = middles > threshold
    figure = go.Figure(
        go.Bar(
            x=middles,
            y=counts,
            width=np.diff(edges),
            marker_color=[faded(THRESHOLD, 0.75) if above else faded(CALIBRATION, 0.65) for above in flagged],
            marker_line_width=0,
            customdata=np.stack([edges[:-1], edges[1:]], axis=1),
            hovertemplate="%{y} calibration points<br>score %{customdata[0]:.3g} to %{customdata[1]:.3g}<extra></extra>",
            showlegend=False,
        )
    )
    left, right = _padded_range(low, high, logarithmic)
    top = float(counts.max())
    # Two heights, and always towards the middle: the two labels cannot cover each other or be cut off.
    for x, y, colour, dash, text in (
        (threshold, 1.12 * top, THRESHOLD, "dash", f"flagged above {threshold:.3g}"),
        (score, 1.28 * top, OOD if is_ood else ID, "solid", f"this input: {shown_score:.3g}"),
    ):
        if math.isfinite(x):
            at = math.log10(x) if logarithmic else x
            side = "left" if at > (left + right) / 2 else "right"
            _upright(figure, x, y, colour, dash, text, f"middle {side}")
    finish(figure, "Aggregated score F(V), larger is stranger", "Calibration points", height)
    figure.update_layout(bargap=0, showlegend=False)
    figure.update_yaxes(range=[0, 1.36 * top])
    figure.update_xaxes(type="log" if logarithmic else "linear", range=[left, right])
    return figure


def _padded_range(low: float, high: float, logarithmic: bool) -> tuple[float, float]:
    """The range of an axis, in its own units (powers of ten on a logarithmic one)."""
    left, right = (math.log10(low), math.log10(high)) if logarithmic else (low, high)
    pad = 0.04 * (right - left) or 0.5
    return left - pad, right + pad


def draw_scores(scores: Floats, calibration_base_scores: Floats, chosen: int | None = None) -> go.Figure:
    """Base scores of single draws over the band that holds the middle 90 % of the calibration set's."""
    low, middle, high = np.quantile(calibration_base_scores, [0.05, 0.5, 0.95])
    above = scores > high
    floor = log_floor(np.concatenate([scores, [low, middle, high]]))
    logarithmic = floor is not None
    if floor is not None:
        low, scores = max(low, floor), np.maximum(scores, floor)
    draws = np.arange(1, len(scores) + 1)
    ends = [0.4, len(scores) + 0.6]
    figure = go.Figure()
    figure.add_scatter(x=ends, y=[high, high], mode="lines", line_width=0, hoverinfo="skip", showlegend=False)
    figure.add_scatter(
        x=ends,
        y=[low, low],
        mode="lines",
        line_width=0,
        fill="tonexty",
        fillcolor=faded(CALIBRATION, 0.22),
        hoverinfo="skip",
        name="middle 90 % of calibration",
    )
    figure.add_scatter(
        x=ends,
        y=[middle, middle],
        mode="lines",
        line={"color": CALIBRATION, "width": 1.5},
        hoverinfo="skip",
        name="calibration median",
    )
    sizes = np.full(len(scores), 11)
    edges = np.zeros(len(scores))
    if chosen is not None and chosen < len(scores):
        sizes[chosen], edges[chosen] = 18, 3
    figure.add_scatter(
        x=draws,
        y=scores,
        mode="markers",
        marker={
            "color": [OOD if a else ID for a in above],
            "size": sizes,
            "opacity": 1,
            "line": {"color": THRESHOLD, "width": edges},
        },
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
        hovertemplate="draw %{x}<br>score %{y:.3g}<extra>click to enlarge</extra>",
        name="this input",
        showlegend=False,
    )
    finish(figure, "Draw", "Score of one draw", 300)
    figure.update_xaxes(range=ends, dtick=1 if len(scores) <= 20 else None, showgrid=False)
    if logarithmic:
        figure.update_yaxes(type="log", dtick=1 if high / low < 1e4 else None)
    return figure


def p_as_n_grows(p_values: Floats, epsilon: float, n: int) -> go.Figure:
    """The p-value with the first 1, 2, ..., n_max draws, on a logarithmic axis, and epsilon."""
    counts = np.arange(1, len(p_values) + 1)
    flagged = p_values < epsilon
    figure = go.Figure()
    figure.add_scatter(
        x=counts,
        y=p_values,
        mode="lines+markers",
        line={"color": faded(CALIBRATION, 0.8), "width": 1.5},
        marker={
            "color": [OOD if f else ID for f in flagged],
            "size": np.where(counts == n, 15, 8),
            "opacity": 1,
            "line": {"color": THRESHOLD, "width": np.where(counts == n, 3, 0)},
        },
        hovertemplate="n = %{x}<br>p = %{y:.3g}<extra></extra>",
        showlegend=False,
    )
    finish(figure, "Number of transforms, n", "p-value", 280)
    _epsilon_line(figure, epsilon)
    figure.update_yaxes(type="log", range=_p_range(p_values, epsilon), dtick=1, tickformat="~g")
    figure.update_xaxes(range=[0.4, len(p_values) + 0.6])
    return figure


def p_over_seeds(p_values: Floats, seeds: Sequence[int], epsilon: float, height: int = 280) -> go.Figure:
    """The p-value of one input with freshly drawn transforms, one dot a seed; the first seed is the one on the page."""
    figure = go.Figure(
        go.Scatter(
            x=[str(seed) for seed in seeds],
            y=p_values,
            mode="markers",
            marker={
                "color": [OOD if p < epsilon else ID for p in p_values],
                "size": [15] + [10] * (len(p_values) - 1),
                "opacity": 1,
                "line": {"color": THRESHOLD, "width": [3] + [0] * (len(p_values) - 1)},
            },
            hovertemplate="seed %{x}<br>p = %{y:.3g}<extra></extra>",
            showlegend=False,
        )
    )
    finish(figure, "Seed of the draw", "p-value", height)
    _epsilon_line(figure, epsilon)
    figure.update_yaxes(type="log", range=_p_range(p_values, epsilon), dtick=1, tickformat="~g")
    figure.update_xaxes(type="category", showgrid=False)
    return figure


def log_floor(values: Floats) -> float | None:
    """The smallest positive value when only a logarithmic axis shows them all, else None; zeros are drawn there."""
    positive = values[values > 0]
    if values.min() < 0 or positive.size < values.size / 2:
        return None
    spread = positive.max() / np.quantile(positive, 0.05)
    return float(positive.min()) if spread > 50 else None


def _upright(
    figure: go.Figure, x: float, top: float, colour: str, dash: str, text: str, position: str
) -> None:
    figure.add_scatter(
        x=[x, x],
        y=[0, top],
        mode="lines+text",
        line={"color": colour, "width": 3, "dash": dash},
        text=["", f"<b>{text}</b>  " if "left" in position else f"  <b>{text}</b>"],
        textposition=position,
        textfont={"color": colour, "size": 13},
        hovertemplate=f"{text}<extra></extra>",
    )


def _epsilon_line(figure: go.Figure, epsilon: float) -> None:
    figure.add_hline(
        epsilon,
        line={"color": THRESHOLD, "width": 2, "dash": "dash"},
        annotation={"text": f"<b>epsilon = {epsilon:g}</b>", "font": {"color": THRESHOLD, "size": 13}},
        annotation_position="top right",
    )


def _p_range(p_values: Floats, epsilon: float) -> list[float]:
    low = min(float(p_values.min()), epsilon)
    return [math.log10(low) - 0.25, 0.12]
