"""Points on a line (`simulate.playground`), and the p-value that a newcomer would have at each place."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from idecode_core import conformal
from idecode_core.conformal import FloatArray
from idecode_core.plots.marks import mark_epsilon, newcomer, without_legend
from idecode_core.plots.style import CALIBRATION, ID, OOD, faded, finish


def playground(
    calibration_set: ArrayLike, x: float, line: FloatArray, p_on_line: FloatArray, *, epsilon: float
) -> go.Figure:
    """The p-value of a newcomer at every place of a line, over the calibration points, and the newcomer at x."""
    points = conformal.checked_scores(calibration_set, "calibration_set")
    p = float(np.interp(x, line, p_on_line))
    flagged = p < epsilon
    figure = go.Figure()
    figure.add_scatter(
        x=line,
        y=np.where(p_on_line < epsilon, 1.05, 0.0),
        mode="none",
        fill="tozeroy",
        fillcolor=faded(OOD, 0.13),
        name="flagged here",
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=line,
        y=p_on_line,
        mode="lines",
        line={"color": CALIBRATION, "width": 2},
        name="p-value at this place",
        hovertemplate="at %{x:.1f}: p = %{y:.3g}<extra></extra>",
    )
    figure.add_scatter(
        x=points,
        y=np.full(points.size, -0.07),
        mode="markers",
        marker={"symbol": "line-ns-open", "size": 16, "color": CALIBRATION, "line": {"width": 2}},
        name="calibration points",
        hovertemplate="calibration point at %{x:.1f}<extra></extra>",
    )
    at = "middle left" if x > 0.8 * line[-1] else "middle right"
    stem = {"color": OOD if flagged else ID, "width": 2, "dash": "dot"}
    trace = newcomer([x, x], [-0.19, p], " at %{x:.1f}", flagged=flagged, at=at)
    figure.add_trace({**trace, "mode": "lines+markers+text", "line": stem})
    mark_epsilon(figure, epsilon)
    finish(figure, "place on the line", "p-value", height=330)
    without_legend(figure)
    figure.update_yaxes(range=[-0.26, 1.05], tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])
    figure.update_xaxes(range=[line[0], line[-1]], showgrid=False)
    return figure
