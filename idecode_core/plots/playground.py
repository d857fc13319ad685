"""Points on a line (`simulate.playground`), and the p-value that a newcomer would have at each place."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from idecode_core import conformal
from idecode_core.conformal import FloatArray
from idecode_core.plots.marks import WITHOUT_LEGEND, line, mark_epsilon, newcomer, points
from idecode_core.plots.style import CALIBRATION, ID, OOD, faded, finish


def playground(
    calibration_set: ArrayLike, x: float, places: FloatArray, p_there: FloatArray, *, epsilon: float
) -> go.Figure:
    """The p-value of a newcomer at every place of a line, over the calibration points, and the newcomer at x."""
    known = conformal.checked_scores(calibration_set, "calibration_set")
    p = float(np.interp(x, places, p_there))
    flagged = p < epsilon
    figure = go.Figure()
    figure.add_scatter(
        x=places,
        y=np.where(p_there < epsilon, 1.05, 0.0),
        mode="none",
        fill="tozeroy",
        fillcolor=faded(OOD, 0.13),
        name="flagged here",
        hoverinfo="skip",
    )
    told = "at %{x:.1f}: p = %{y:.3g}"
    figure.add_trace(line(places, p_there, "p-value at this place", told, color=CALIBRATION, width=2))
    look = {"symbol": "line-ns-open", "size": 16, "color": CALIBRATION, "line": {"width": 2}}
    told, below = "calibration point at %{x:.1f}", np.full(known.size, -0.07)
    figure.add_trace(points(known, below, "calibration points", told, **look))
    at = "middle left" if x > 0.8 * places[-1] else "middle right"
    stem = {"color": OOD if flagged else ID, "width": 2, "dash": "dot"}
    trace = newcomer([x, x], [-0.19, p], " at %{x:.1f}", flagged=flagged, at=at)
    figure.add_trace({**trace, "mode": "lines+markers+text", "line": stem})
    mark_epsilon(figure, epsilon)
    layout = WITHOUT_LEGEND | {
        "yaxis": {"range": [-0.26, 1.05], "tickvals": [0, 0.2, 0.4, 0.6, 0.8, 1]},
        "xaxis": {"range": [places[0], places[-1]], "showgrid": False},
    }
    return finish(figure, "place on the line", "p-value", 330, layout)
