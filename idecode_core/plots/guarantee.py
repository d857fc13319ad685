"""The bound on false detections, drawn: rates against epsilon, the law at one epsilon, uniformity of iD p-values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from scipy import stats

from idecode_core.conformal import FalseDetectionLaw, FloatArray, law_bands
from idecode_core.conformal.observed import PREDICTED, predictive_bands
from idecode_core.plots.marks import Trace, band, line, points, threshold_line
from idecode_core.plots.style import CALIBRATION, ID, OOD, OTHERS, THRESHOLD, faded, finish

if TYPE_CHECKING:
    from idecode_core.conformal.observed import ObservedRate, PValueHistogram

LEVEL = 0.9
"""Without test points, the band holds the true rate for this share of all calibration sets."""


def false_detection_rates(
    k: int,
    epsilons: Sequence[float],
    *,
    resampled: ArrayLike | None = None,
    observed: Sequence[ObservedRate] = (),
    epsilon: float | None = None,
    here: ObservedRate | None = None,
    others: Mapping[str, Sequence[ObservedRate]] | None = None,
    height: int = 400,
    minus: bool = False,
) -> go.Figure:
    """Fig. 1 of the paper and more: the bound, a band, resampled calibration sets, what was observed, all at their epsilon.

    `resampled` has shape (repeats, len(epsilons)); boxes show its quartiles, whiskers 5% to 95%. `here` is what was
    observed at the epsilon in use, `others` by other detectors, one line each. Where dots of a finite test set are drawn, the band has that set's own chance in it.
    `minus` takes epsilon off each rate, in percentage points: what is above 0 is above the bound. Heights are true to the
    number there wherever a dot stands, so dots stand beside their boxes.
    """
    top = max(epsilons)
    step = min(np.diff([0.0, *epsilons]))

    def shown(x: ArrayLike, rates: ArrayLike) -> FloatArray:
        return 100 * (np.asarray(rates) - np.asarray(x)) if minus else np.asarray(rates, dtype=np.float64)

    grid = np.linspace(top / 100, top * 1.04, 100)
    if observed:
        points = observed[0].total
        low, high = predictive_bands(k, tuple(grid.tolist()), points)
        name = f"chance, {PREDICTED:.0%} of cases with {points:,} test inputs"
    else:
        low, high = law_bands(k, grid, LEVEL)
        name = f"true rate, {LEVEL:.0%} of calibration sets"
    figure = go.Figure(band(grid, shown(grid, low), shown(grid, high), faded(CALIBRATION, 0.25), name=name))
    ends, told = [0, top * 1.04], "the bound: epsilon = %{x:.3f}"
    figure.add_trace(line(ends, shown(ends, ends), "the bound, epsilon", told, color=THRESHOLD, width=2))
    if resampled is not None:
        quantiles = np.quantile(np.asarray(resampled), [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
        fence, q1, median, q3, upper = (shown(epsilons, values) for values in quantiles)
        figure.add_trace(
            go.Box(
                x=list(epsilons),
                lowerfence=fence,
                q1=q1,
                median=median,
                q3=q3,
                upperfence=upper,
                name="resampled sets",
                width=step * 0.42,
                fillcolor=faded(CALIBRATION, 0.35),
                line={"color": CALIBRATION, "width": 1.3},
            )
        )
    if observed:
        beside, unit = (step * 0.3, 100) if minus else (0.0, 1)  # beside the box, in percentage points
        intervals = {
            "symmetric": False,
            "array": [unit * (o.high - o.rate) for o in observed],
            "arrayminus": [unit * (o.rate - o.low) for o in observed],
            "thickness": 1.6,
            "width": 5,
        }
        dots = _dots(observed, shown, "observed, 95% interval", color=ID, size=8)
        figure.add_trace(dots | {"x": [o.epsilon + beside for o in observed], "error_y": intervals})
    for (name, rates), colour in zip((others or {}).items(), cycle(OTHERS), strict=False):
        at = [rate.epsilon for rate in rates]
        told = f"{name}: epsilon %{{x:g}}, rate %{{y:.4g}}"
        path = line(at, shown(at, [rate.rate for rate in rates]), name, told, color=colour, width=2)
        figure.add_trace(path | {"showlegend": True})
    if here is not None and here.epsilon <= top * 1.04:
        ring = {"color": faded(ID, 0.25), "size": 15, "line": {"color": ID, "width": 2.5}}
        figure.add_trace(_dots([here], shown, "at your epsilon", **ring))
    layout: dict[str, Any] = {
        "xaxis": {"range": [0, top * 1.06], "tickformat": ".3~g"},
        "yaxis": {"tickformat": ".3~g"} if minus else {"rangemode": "tozero", "tickformat": ".3~g"},
    }
    if epsilon is not None and epsilon <= top * 1.04:
        layout["shapes"] = [threshold_line(x=epsilon, dash="dot", width=1.5)]
    title = "rate minus epsilon, % points" if minus else "false detection rate"
    return finish(figure, "false alarms allowed, epsilon", title, height, layout)


def _dots(
    observed: Sequence[ObservedRate],
    shown: Callable[[ArrayLike, ArrayLike], FloatArray],
    name: str,
    **look: Any,
) -> Trace:
    """What was observed, each at its exact epsilon: on a diagonal a step to the side would be a step below the bound."""
    told = (
        "epsilon = %{customdata[4]:.4g}: %{customdata[0]:,} of %{customdata[1]:,} iD points flagged "
        "(%{customdata[5]:.2%})<br>95% interval of the true rate: %{customdata[2]:.2%} to %{customdata[3]:.2%}"
    )
    x = [o.epsilon for o in observed]
    details = [[o.flagged, o.total, o.low, o.high, o.epsilon, o.rate] for o in observed]
    return points(x, shown(x, [o.rate for o in observed]), name, told, **look) | {"customdata": details}


def rate_law(law: FalseDetectionLaw) -> go.Figure:
    """The density of the true rate over calibration sets; the part above epsilon is shaded."""
    figure = go.Figure()
    if law.J > 0:
        beta = stats.beta(law.J, law.k + 1 - law.J)
        x = np.unique(np.r_[np.linspace(beta.ppf(1e-4), beta.ppf(1 - 1e-4), 240), law.epsilon])
        y = beta.pdf(x)
        for part, colour, name in (
            (x <= law.epsilon, ID, "at most epsilon"),
            (x >= law.epsilon, OOD, "above epsilon"),
        ):
            if part.any():
                curve = line(x[part], y[part], name, "true rate %{x:.4f}", color=colour, width=2)
                figure.add_trace(curve | {"fill": "tozeroy", "fillcolor": faded(colour, 0.3)})
    top = max((float(np.max(trace.y)) for trace in figure.data), default=1.0)
    at, name = [law.epsilon, law.epsilon], f"epsilon = {law.epsilon:g}"
    figure.add_trace(line(at, [0, 1.05 * top], name, color=THRESHOLD, width=2))
    layout = {"yaxis": {"showticklabels": False, "rangemode": "tozero"}}
    return finish(figure, "true false detection rate of one calibration set", "density", 300, layout)


def p_value_uniformity(histogram: PValueHistogram) -> go.Figure:
    """Counts of iD p-values in bins, with the count expected and the band that holds a bin 95% of the time."""
    left, right = histogram.edges[:-1], histogram.edges[1:]
    middle = (left + right) / 2
    figure = go.Figure(
        go.Bar(
            x=middle,
            y=histogram.counts,
            width=np.diff(histogram.edges),
            name="iD test points",
            marker={"color": faded(ID, 0.55), "line": {"color": ID, "width": 0.5}},
            customdata=np.column_stack([left, right, histogram.expected]),
            hovertemplate="p from %{customdata[0]:.3g} to %{customdata[1]:.3g}: %{y:,} points<br>expected "
            "%{customdata[2]:.1f}<extra></extra>",
        )
    )
    steps = np.repeat(histogram.edges, 2)[1:-1]
    for heights, name, dash in (
        (histogram.high, "95% band if exchangeable", "solid"),
        (histogram.low, "", "solid"),
        (histogram.expected, "expected", "dot"),
    ):
        figure.add_trace(line(steps, np.repeat(heights, 2), name, color=CALIBRATION, width=1.5, dash=dash))
    layout = {"xaxis": {"range": [0, 1]}, "yaxis": {"rangemode": "tozero"}}
    return finish(figure, "p-value of iD test points", "points", 300, layout)
