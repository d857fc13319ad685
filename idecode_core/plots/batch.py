"""A batch judged together (`simulate.batch`): one batch in order, and what three rules do over many batches."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from idecode_core.conformal import FloatArray
from idecode_core.plots.marks import mark_epsilon, mark_level, without_legend
from idecode_core.plots.style import CALIBRATION, ID, OOD, TEXT, THRESHOLD, faded, finish


def batch_ranks(
    p_values: ArrayLike, is_ood: ArrayLike, flagged: ArrayLike, *, epsilon: float, q: float, shown: int = 40
) -> go.Figure:
    """The smallest p-values of a batch in order, by truth; filled when flagged by Benjamini-Hochberg.

    A plain threshold flags below the horizontal line. Benjamini-Hochberg looks for the last point on or below the
    slanted line q i / m, and flags it and all before it.
    """
    order = np.argsort(np.asarray(p_values), kind="stable")
    shown = min(shown, order.size)
    p, ood, flag = (np.asarray(values)[order][:shown] for values in (p_values, is_ood, flagged))
    rank = np.arange(1, shown + 1)
    top = max(2.5 * epsilon, 1.1 * q * shown / order.size, 0.02)
    inside = p < 0.98 * top  # a dot on the edge would be cut in half
    figure = go.Figure()
    for name, here, colour in (("iD", ~ood & inside, ID), ("OOD", ood & inside, OOD)):
        for state, filled in (("flagged", True), ("not flagged", False)):
            chosen = here & (flag == filled)
            figure.add_scatter(
                x=rank[chosen],
                y=p[chosen],
                mode="markers",
                name=f"{name}, {state}",
                marker={
                    "size": 9,
                    "color": colour,
                    "symbol": "circle" if filled else "circle-open",
                    "line": {"width": 2, "color": colour},
                },
                hovertemplate=f"{name}, {state}: p = %{{y:.3g}}, place %{{x}}<extra></extra>",
            )
    figure.add_scatter(
        x=[0, shown],
        y=[0, q * shown / order.size],
        mode="lines",
        line={"color": THRESHOLD, "width": 2},
        name="q × place / size",
        hoverinfo="skip",
    )
    mark_epsilon(figure, epsilon, dash="dash", on_left=True)
    finish(figure, "place in the batch, strangest first", "p-value", height=340)
    without_legend(figure)
    figure.update_xaxes(range=[0, shown + 1])
    figure.update_yaxes(range=[-0.004, top])
    return figure


def rule_boxes(
    values_by_rule: Mapping[str, FloatArray], *, y_title: str, limit: float | None = None
) -> go.Figure:
    """A proportion over many batches, a box for each rule, its mean as a diamond, and the limit it should keep to."""
    figure = go.Figure()
    for rule, values in values_by_rule.items():
        figure.add_box(
            y=values,
            name=rule.replace(" ", "<br>").replace("-", "-<br>"),
            boxpoints=False,
            line={"color": CALIBRATION},
            fillcolor=faded(CALIBRATION, 0.2),
            showlegend=False,
            hoverinfo="y",
        )
        figure.add_scatter(
            x=[rule.replace(" ", "<br>").replace("-", "-<br>")],
            y=[np.mean(values)],
            mode="markers",
            marker={"symbol": "diamond", "size": 13, "color": TEXT},
            showlegend=False,
            hovertemplate=f"{rule}: mean %{{y:.1%}}<extra></extra>",
        )
    if limit is not None:
        mark_level(figure, limit, f"q = {limit:g}", on_left=True)
    finish(figure, "rule", y_title, height=300)
    without_legend(figure)
    figure.update_yaxes(range=[-0.03, 1.03], tickformat=".0%")
    return figure
