"""Sounds: waveform, log-mel spectrogram with what a draw hides, how strange each stretch of a recording is, and which masks moved
the score."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idecode_core.plots.marks import Trace, calibration_band, line
from idecode_core.plots.style import CALIBRATION, ID, OOD, faded, finish

COLUMNS = 800  # more could not be told apart on a screen
HIDDEN = "#8C8C8C"
SIDES = {"l": 64, "r": 76, "pad": 0}
"""Margins of every figure over time: seconds lie below each other, and the colour bar fits in at the right."""
HERTZ_TICKS = (250, 500, 1000, 2000, 4000, 8000, 16000)


def waveform(samples: NDArray[np.floating], sample_rate: int) -> go.Figure:
    """The lowest and highest sample of each column of the screen, over time."""
    columns = min(COLUMNS, len(samples))
    edges = np.linspace(0, len(samples), columns + 1).astype(int)[:-1]
    high, low = np.maximum.reduceat(samples, edges), np.minimum.reduceat(samples, edges)
    seconds = edges / sample_rate
    look: Trace = {"color": CALIBRATION, "width": 1}
    upper, lower = line(seconds, high, **look), line(seconds, low, hover="%{x:.2f} s", **look)
    between = {"fill": "tonexty", "fillcolor": faded(CALIBRATION, 0.6)}
    reach = max(0.05, float(np.abs(samples).max(initial=0.0)))
    layout = {
        "yaxis": {"range": [-1.05 * reach, 1.05 * reach], "nticks": 3, "automargin": False},
        "xaxis": {"range": [0, len(samples) / sample_rate]},
        "margin": {**SIDES, "t": 8},
    }
    return finish(go.Figure([upper, lower | between]), "", "Level", 130, layout)


def spectrogram(
    decibels: NDArray[np.floating],
    seconds_per_frame: float,
    hertz: NDArray[np.floating],
    hidden: NDArray[np.bool_] | None = None,
    height: int = 260,
) -> go.Figure:
    """Log-mel spectrogram (bands, frames): seconds to the right, Hz upwards, brighter is louder, hidden cells grey."""
    width = -(-decibels.shape[1] // COLUMNS)  # frames of one column
    shown = np.stack(
        [decibels[:, i : i + width].max(axis=1) for i in range(0, decibels.shape[1], width)], axis=1
    )
    if hidden is not None:
        all_hidden = [hidden[:, i : i + width].all(axis=1) for i in range(0, hidden.shape[1], width)]
        shown = np.where(np.stack(all_hidden, axis=1), np.nan, shown)
    layout, x = seconds_and_hertz(shown.shape[1], width * seconds_per_frame, hertz)
    figure = go.Figure(
        go.Heatmap(
            z=shown.astype(np.float32),
            x=x,
            customdata=np.broadcast_to(np.round(hertz)[:, None], shown.shape).astype(np.float32),
            colorscale="Cividis",
            zmin=float(np.quantile(decibels, 0.02)),
            zmax=float(decibels.max()) + 1e-3,
            colorbar={"title": "dB", "thickness": 10, "outlinewidth": 0},
            hovertemplate="%{x:.2f} s, %{customdata:.0f} Hz: %{z:.0f} dB<extra></extra>",
            hoverongaps=False,
        )
    )
    if hidden is not None:
        layout["plot_bgcolor"] = HIDDEN
    return finish(figure, "Seconds", "Frequency (Hz)", height, layout)


def seconds_and_hertz(
    columns: int, seconds: float, hertz: NDArray[np.floating]
) -> tuple[dict[str, Any], NDArray[np.floating]]:
    """The layout of a spectrogram with columns of so many seconds and bands at these frequencies; the columns' middles."""
    ticks = [tick for tick in HERTZ_TICKS if hertz[0] <= tick <= hertz[-1]]
    up = {
        "tickvals": np.interp(ticks, hertz, np.arange(len(hertz))),
        "ticktext": [f"{tick:,}" for tick in ticks],
        "showgrid": False,
        "automargin": False,
        "range": [-0.5, len(hertz) - 0.5],
    }
    across = {"showgrid": False, "range": [0, columns * seconds]}
    return {"xaxis": across, "yaxis": up, "margin": {**SIDES, "t": 8}}, (np.arange(columns) + 0.5) * seconds


def block_scores(
    seconds: NDArray[np.floating],
    scores: NDArray[np.floating],
    calibration_scores: NDArray[np.floating],
    height: int = 200,
) -> go.Figure:
    """The mean score of each block over time, with the band that holds the middle 90 % of whole calibration sounds.

    seconds (blocks, 2) from and to, scores (blocks, n), calibration_scores (k,): the mean score of each.
    """
    heights = np.quantile(calibration_scores, [0.05, 0.5, 0.95])
    means = scores.mean(axis=1)
    ends = [float(seconds.min()), float(seconds.max())]
    figure = go.Figure(calibration_band(ends, heights, "middle 90 % of calibration sounds", "their median"))
    for (start, end), mean in zip(seconds.tolist(), means.tolist(), strict=True):
        told, colour = f"{start:.1f} to {end:.1f} s: score {mean:.3g}", OOD if mean > heights[2] else ID
        figure.add_trace(line([start, end], [mean, mean], hover=told, color=colour, width=6))
    up = {"rangemode": "tozero", "automargin": False}
    layout = {"xaxis": {"range": ends}, "yaxis": up, "margin": SIDES}
    return finish(figure, "Seconds", "Mean score", height, layout)


def moved_by_masks(
    effects: NDArray[np.float64], seconds_per_frame: float, hertz: NDArray[np.floating]
) -> go.Figure:
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
