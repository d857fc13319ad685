"""A batch judged together (`simulate.batch`): one batch in order, and what three rules do over many batches."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from idecode_core.conformal import FloatArray
from idecode_core.plots.marks import WITHOUT_LEGEND, line, mark_epsilon, mark_level, points
from idecode_core.plots.style import CALIBRATION, ID, OOD, TEXT, THRESHOLD, faded, finish

SHOWN = 40  # of the smallest p-values


def batch_ranks(
    p_values: ArrayLike, is_ood: ArrayLike, flagged: ArrayLike, *, epsilon: float, q: float
) -> go.Figure:
    """The smallest p-values of a batch in order, by truth; filled when flagged by Benjamini-Hochberg.

    A plain threshold flags below the horizontal line. Benjamini-Hochberg looks for the last point on or below the
    slanted line q i / m, and flags it and all before it.
    """
    order = np.argsort(np.asarray(p_values), kind="stable")
    shown = min(SHOWN, order.size)
    p, ood, flag = (np.asarray(values)[order][:shown] for values in (p_values, is_ood, flagged))
    rank = np.arange(1, shown + 1)
    top = max(2.5 * epsilon, 1.1 * q * shown / order.size, 0.02)
    inside = p < 0.98 * top  # a dot on the edge would be cut in half
    figure = go.Figure()
    for name, here, colour in (("iD", ~ood & inside, ID), ("OOD", ood & inside, OOD)):
        for state, filled in (("flagged", True), ("not flagged", False)):
            chosen = here & (flag == filled)
            look = {
                "size": 9,
                "color": colour,
                "symbol": "circle" if filled else "circle-open",
                "line": {"width": 2, "color": colour},
            }
            told = f"{name}, {state}: p = %{{y:.3g}}, place %{{x}}"
            figure.add_trace(points(rank[chosen], p[chosen], f"{name}, {state}", told, **look))
    slant = [0, q * shown / order.size]
    figure.add_trace(line([0, shown], slant, "q × place / size", color=THRESHOLD, width=2))
    mark_epsilon(figure, epsilon, dash="dash", on_left=True)
    layout = WITHOUT_LEGEND | {"xaxis": {"range": [0, shown + 1]}, "yaxis": {"range": [-0.004, top]}}
    return finish(figure, "place in the batch, strangest first", "p-value", 340, layout)


def rule_boxes(
    values_by_rule: Mapping[str, FloatArray], *, y_title: str, limit: float | None = None
) -> go.Figure:
    """A proportion over many batches, a box for each rule, its mean as a diamond, and the limit it should keep to."""
    figure = go.Figure()
    for rule, values in values_by_rule.items():
        name = rule.replace(" ", "<br>").replace("-", "-<br>")
        figure.add_box(
            y=values,
            name=name,
            boxpoints=False,
            line={"color": CALIBRATION},
            fillcolor=faded(CALIBRATION, 0.2),
            showlegend=False,
            hoverinfo="y",
        )
        told = f"{rule}: mean %{{y:.1%}}"
        figure.add_trace(points([name], [np.mean(values)], hover=told, symbol="diamond", size=13, color=TEXT))
    if limit is not None:
        mark_level(figure, limit, f"q = {limit:g}", on_left=True)
    layout = WITHOUT_LEGEND | {"yaxis": {"range": [-0.03, 1.03], "tickformat": ".0%"}}
    return finish(figure, "rule", y_title, 300, layout)
