"""A stream that changes (`simulate.stream`): its p-values, the paths of those who watch it, and their alarms."""

import math
from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from idecode_core.conformal import FloatArray
from idecode_core.plots.marks import WITHOUT_LEGEND, line, points
from idecode_core.plots.style import CALIBRATION, ID, OOD, TEXT, THRESHOLD, finish


def stream_paths(
    p_values: ArrayLike,
    paths: Mapping[str, tuple[FloatArray, float, ArrayLike]],
    *,
    change_at: int,
) -> go.Figure:
    """p-values of a stream on top, below it each watcher's path on a log scale, its alarm line and its alarms.

    `paths` maps a watcher's name to (natural log of its path, natural log of its alarm line, times of its alarms).
    """
    p = np.asarray(p_values, dtype=np.float64)
    time = np.arange(1, p.size + 1)
    figure = make_subplots(
        rows=1 + len(paths),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.07,
        row_heights=[0.3, *[0.35] * len(paths)],
    )
    for name, here, colour in (("before", time <= change_at, ID), ("after", time > change_at, OOD)):
        look = {"size": 4, "color": colour, "opacity": 0.8}
        told = "point %{x}: p = %{y:.3f}"
        figure.add_trace(points(time[here], p[here], f"p-values {name} the change", told, **look), 1, 1)
    for row, (name, (log_path, log_limit, alarms)) in enumerate(paths.items(), start=2):
        times = np.asarray(alarms, dtype=np.int64)
        height = np.asarray(log_path) / math.log(10)
        told = f"{name} after point %{{x}}: %{{customdata:.3g}}"
        path = line(time, height, name, told, color=CALIBRATION, width=2)
        figure.add_trace(path | {"customdata": 10 ** np.clip(height, -300, 300)}, row, 1)
        look = {"symbol": "triangle-down", "size": 12, "color": OOD}
        alarm = f"alarm of {name}"
        figure.add_trace(
            points(time[times], height[times], alarm, f"{alarm} at point %{{x}}", **look), row, 1
        )
        figure.add_hline(y=log_limit / math.log(10), line={"color": THRESHOLD, "width": 2}, row=row, col=1)
    if 0 < change_at < p.size:
        figure.add_vline(x=change_at + 0.5, line={"color": TEXT, "width": 2, "dash": "dot"})
    finish(figure, "", "", 180 + 165 * len(paths), WITHOUT_LEGEND)
    figure.update_xaxes(range=[0, p.size + 1])
    figure.update_xaxes(title_text="point of the stream", row=1 + len(paths), col=1)
    figure.update_yaxes(title_text="p-value", range=[0, 1], row=1, col=1)
    for row, (name, (log_path, log_limit, _)) in enumerate(paths.items(), start=2):
        low, high = (
            float(v) / math.log(10) for v in (np.min(log_path, initial=0.0), max(np.max(log_path), log_limit))
        )
        ticks = _decades(low, high)
        figure.update_yaxes(
            title_text=name,
            tickvals=ticks,
            ticktext=["1" if t == 0 else f"10<sup>{t}</sup>" for t in ticks],
            range=[low - 0.3, high + 0.6],
            row=row,
            col=1,
        )
    return figure


def _decades(low: float, high: float) -> list[int]:
    """At most five powers of ten between two, 10^0 among them."""
    step = max(math.ceil((high - low) / 4), 1)
    first = -step * math.floor(-low / step) if low < 0 else 0
    return list(range(first, math.floor(high) + 1, step))
