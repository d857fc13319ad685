"""An intact and a broken run (`simulate.breaking`): are p-values uniform, is the rate at most epsilon?"""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from idecode_core.conformal import FloatArray
from idecode_core.plots.marks import WITHOUT_LEGEND, band, line, mark_threshold, mark_uniform, points
from idecode_core.plots.style import ID, THRESHOLD, faded, finish


def density(p_values: ArrayLike) -> FloatArray:
    """How often p-values fall into each of twenty equal bins, as a multiple of the uniform share. Shape (20,).

    A p-value of exactly 0.05 is not below 0.05: bins are closed on the left, the last one on both sides.

    >>> float(density([0.0, 0.01, 0.05, 0.99])[0])
    10.0
    """
    p = np.asarray(p_values, dtype=np.float64).ravel()
    return np.histogram(p, np.linspace(0, 1, 21))[0] / p.size * 20


def uniformity(p_values: ArrayLike, *, epsilon: float, top: float) -> go.Figure:
    """p-values of iD test points in twenty bins. Flat at 1 when the guarantee's assumptions hold and scores do not tie."""
    figure = go.Figure()
    figure.add_bar(
        x=np.arange(0.025, 1.0, 0.05),
        y=density(p_values),
        width=0.045,
        marker_color=ID,
        showlegend=False,
        hovertemplate="p around %{x:.3f}: %{y:.2f} times as many as if uniform<extra></extra>",
    )
    mark_uniform(figure, 1.0)
    mark_threshold(figure, epsilon, f"ε = {epsilon:g}")
    layout = WITHOUT_LEGEND | {"xaxis": {"range": [0, 1]}, "yaxis": {"range": [0, top]}}
    return finish(figure, "p-value of iD test points", "times the uniform share", 230, layout)


def rate_curve(epsilons: ArrayLike, rates: FloatArray, *, epsilon: float, top: float) -> go.Figure:
    """The false detection rate (repeats, epsilons) against epsilon: mean, 5-95 % of the repeats, and the bound."""
    x = np.asarray(epsilons, dtype=np.float64)
    low, high = np.quantile(rates, [0.05, 0.95], axis=0)
    mean, ends, here = rates.mean(axis=0), [0, x[-1]], "ε = %{x:.2f}: %{y:.1%} of iD points flagged"
    traces = [
        band(x, low, high, faded(ID, 0.18), name="90 % of the repeats"),
        line(x, mean, "mean", here, color=ID, width=3),
        line(ends, ends, "the bound, ε", color=THRESHOLD, width=2, dash="dash"),
        points([epsilon], [np.interp(epsilon, x, mean)], hover="at ε = %{x:g}: %{y:.1%}", size=11, color=ID),
    ]
    layout = WITHOUT_LEGEND | {"xaxis": {"range": ends}, "yaxis": {"range": [0, top], "tickformat": ".0%"}}
    return finish(go.Figure(traces), "ε", "false detection rate", 230, layout)
