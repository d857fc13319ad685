"""Sounds: waveform, log-mel spectrogram with what a draw hides, and how strange each stretch of a recording is."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idecode_core.plots.marks import calibration_band
from idecode_core.plots.style import CALIBRATION, ID, OOD, faded, finish

COLUMNS = 800  # more could not be told apart on a screen
HIDDEN = "#8C8C8C"
SIDES = {"l": 64, "r": 76, "pad": 0}
"""Margins of every figure over time: seconds lie below each other, and the colour bar fits in at the right."""
HERTZ_TICKS = (250, 500, 1000, 2000, 4000, 8000, 16000)


def waveform(samples: NDArray[np.floating], sample_rate: int, height: int = 130) -> go.Figure:
    """The lowest and highest sample of each column of the screen, over time."""
    columns = min(COLUMNS, len(samples))
    edges = np.linspace(0, len(samples), columns + 1).astype(int)[:-1]
    high, low = np.maximum.reduceat(samples, edges), np.minimum.reduceat(samples, edges)
    seconds = edges / sample_rate
    line = {"color": CALIBRATION, "width": 1}
    figure = go.Figure()
    figure.add_scatter(x=seconds, y=high, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    figure.add_scatter(
        x=seconds,
        y=low,
        mode="lines",
        line=line,
        fill="tonexty",
        fillcolor=faded(CALIBRATION, 0.6),
        hovertemplate="%{x:.2f} s<extra></extra>",
        showlegend=False,
    )
    finish(figure, "", "Level", height)
    reach = max(0.05, float(np.abs(samples).max(initial=0.0)))
    figure.update_yaxes(range=[-1.05 * reach, 1.05 * reach], nticks=3, automargin=False)
    figure.update_xaxes(range=[0, len(samples) / sample_rate])
    figure.update_layout(margin={**SIDES, "t": 8})
    return figure


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
    places = np.arange(len(hertz))
    figure = go.Figure(
        go.Heatmap(
            z=shown.astype(np.float32),
            x=(np.arange(shown.shape[1]) + 0.5) * width * seconds_per_frame,
            y=places,
            customdata=np.broadcast_to(np.round(hertz)[:, None], shown.shape).astype(np.float32),
            colorscale="Cividis",
            zmin=float(np.quantile(decibels, 0.02)),
            zmax=float(decibels.max()) + 1e-3,
            colorbar={"title": "dB", "thickness": 10, "outlinewidth": 0},
            hovertemplate="%{x:.2f} s, %{customdata:.0f} Hz: %{z:.0f} dB<extra></extra>",
            hoverongaps=False,
        )
    )
    finish(figure, "Seconds", "Frequency (Hz)", height)
    ticks = [tick for tick in HERTZ_TICKS if hertz[0] <= tick <= hertz[-1]]
    figure.update_yaxes(
        tickvals=np.interp(ticks, hertz, places),
        ticktext=[f"{tick:,}" for tick in ticks],
        showgrid=False,
        automargin=False,
        range=[-0.5, len(hertz) - 0.5],
    )
    figure.update_xaxes(showgrid=False, range=[0, shown.shape[1] * width * seconds_per_frame])
    figure.update_layout(
        plot_bgcolor=HIDDEN if hidden is not None else "rgba(0,0,0,0)", margin={**SIDES, "t": 8}
    )
    return figure


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
        figure.add_scatter(
            x=[start, end],
            y=[mean, mean],
            mode="lines",
            line={"color": OOD if mean > heights[2] else ID, "width": 6},
            hovertemplate=f"{start:.1f} to {end:.1f} s: score {mean:.3g}<extra></extra>",
            showlegend=False,
        )
    finish(figure, "Seconds", "Mean score", height)
    figure.update_xaxes(range=ends)
    figure.update_yaxes(rangemode="tozero", automargin=False)
    figure.update_layout(margin=SIDES)
    return figure
