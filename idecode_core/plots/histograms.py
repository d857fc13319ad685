"""Scores of several groups over each other: iD, OOD, and the calibration set as an outline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from idecode_core.plots.marks import text_at, threshold_line
from idecode_core.plots.style import CALIBRATION, ID, OOD, THRESHOLD, faded, finish

BINS = 50
CLIPPED = "; the outermost bars hold all beyond"


@dataclass(frozen=True, eq=False)
class Group:
    """Scores of one kind of points."""

    label: str
    scores: ArrayLike
    colour: str


def bin_edges(scores: ArrayLike) -> tuple[NDArray[np.float64], bool]:
    """Edges that show the bulk, and whether they are spaced by ratio: scores near zero with a long tail need that."""
    values = np.asarray(scores, dtype=np.float64)
    low, high = (float(v) for v in np.quantile(values, [0.002, 0.998]))
    if low == high:
        low, high = low - 0.5, high + 0.5
    if low > 0 and high / low > 50:
        return np.geomspace(low, high, BINS + 1), True
    return np.linspace(low, high, BINS + 1), False


def score_histograms(
    groups: Sequence[Group], threshold: float | None = None, threshold_label: str = "", height: int = 420
) -> go.Figure:
    """Scores of several groups over each other, as shares of their group; grey is the calibration set.

    Scores beyond the outermost bins are counted in them, so that each group's bars add up to 100%.
    """
    edges, by_ratio = bin_edges(
        np.concatenate([np.asarray(group.scores, dtype=np.float64) for group in groups])
    )
    if by_ratio:
        edges = np.log10(edges)
    figure, clipped = go.Figure(), False
    for group in groups:
        values = np.asarray(group.scores, dtype=np.float64)
        if by_ratio:
            values = np.log10(np.maximum(values, 10 ** edges[0]))
        clipped |= bool(((values < edges[0]) | (values > edges[-1])).any())
        counts, _ = np.histogram(values.clip(edges[0], edges[-1]), edges)
        share = counts / max(values.size, 1)
        left, right = edges[:-1], edges[1:]
        shown = np.stack([left, right], axis=1)
        trace = {
            "x": (left + right) / 2,
            "y": share,
            "name": group.label,
            "customdata": np.column_stack([10**shown if by_ratio else shown, counts]),
            "hovertemplate": f"{group.label}: %{{customdata[2]:,}} points (%{{y:.1%}})<br>scores %{{customdata[0]:.3g}} to "
            "%{customdata[1]:.3g}<extra></extra>",
        }
        if group.colour == CALIBRATION:  # an outline, so that what is compared with it stays in sight
            trace |= {"mode": "lines", "line": {"color": CALIBRATION, "width": 2, "shape": "hvh"}}
            figure.add_scatter(**trace)
        else:
            edge = {"color": group.colour, "width": 0.5}
            figure.add_bar(
                **trace, width=np.diff(edges), marker={"color": faded(group.colour, 0.5), "line": edge}
            )
    layout: dict[str, Any] = {
        "barmode": "overlay",
        "bargap": 0,
        "yaxis": {"tickformat": ".0%", "rangemode": "tozero"},
        "xaxis": {"range": [edges[0], edges[-1]]},
    }
    if by_ratio:
        whole = np.arange(np.ceil(edges[0]), np.floor(edges[-1]) + 1)
        ticks = whole if whole.size >= 2 else np.linspace(edges[0], edges[-1], 5)
        layout["xaxis"] |= {"tickvals": ticks, "ticktext": [f"{10**tick:.3g}" for tick in ticks]}
    if threshold is not None and np.isfinite(threshold):
        place = float(np.log10(max(threshold, 10 ** edges[0]))) if by_ratio else threshold
        place = float(np.clip(place, edges[0], edges[-1]))
        far = place > edges[0] + 0.6 * (edges[-1] - edges[0])
        layout["shapes"] = [threshold_line(x=place)]
        beside = {"xanchor": "right", "xshift": -4} if far else {"xanchor": "left", "xshift": 4}
        look = {"yref": "y domain", "yanchor": "top", "font": {"color": THRESHOLD}, **beside}
        layout["annotations"] = [text_at(threshold_label, place, 1, **look)]
    title = "score F(V)" + (", log scale" if by_ratio else "") + (CLIPPED if clipped else "")
    return finish(figure, title, "share of the group", height, layout)


def groups_of(
    id_scores: ArrayLike, ood_scores: ArrayLike, ood_label: str, calibration_scores: ArrayLike | None = None
) -> list[Group]:
    """The usual three groups in the usual colours."""
    groups = [] if calibration_scores is None else [Group("calibration", calibration_scores, CALIBRATION)]
    return [*groups, Group("iD test", id_scores, ID), Group(ood_label, ood_scores, OOD)]
