"""How well scores separate iD from OOD: ROC curves, methods side by side, the gain with n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from idecode_core.plots.marks import band, threshold_line
from idecode_core.plots.style import CALIBRATION, ID, OOD, OTHERS, TEXT, THRESHOLD, faded, finish

if TYPE_CHECKING:
    from idecode_core.evaluation.methods import Metric as Spread
    from idecode_core.evaluation.side_by_side import Growth, NamedCurve, Row

Metric = Literal["auroc", "tnr"]
TITLES = {"auroc": "AUROC", "tnr": "TNR at 90% TPR"}
SYMBOLS = {"base score": "line-ns-open", "ICAD": "circle-open", "iDECODe": "circle"}
NARROW = 4.0  # percent
SIZES = {"base score": 19, "ICAD": 14, "iDECODe": 7}  # all three are seen where they coincide
GREY = faded(CALIBRATION, 0.8)
DETECTORS = (OOD, ID, *OTHERS[:3])
"""Colours of several detectors in one figure; from the sixth on they come again, with dashes."""
NAMES_FROM, NAMES_STEP = 0.5, 0.068  # of the plot's height: one line of text
REACH_FROM, REACH_STEP = 0.84, 0.09  # where the lines to the names begin


def roc_curves(
    curves: Sequence[NamedCurve],
    selected: str,
    operating: tuple[float, float] | None = None,
    epsilon: float | None = None,
    height: int = 420,
) -> go.Figure:
    """One line per OOD set, the selected one in colour, with its TNR at 90% TPR and where epsilon puts it (`operating`)."""
    figure = go.Figure()
    for curve in sorted(curves, key=lambda curve: curve.label == selected):  # the selected one on top
        chosen = curve.label == selected
        figure.add_trace(_roc_line(curve, OOD if chosen else GREY, 3 if chosen else 1.5, "solid"))
        if chosen:
            figure.add_trace(
                go.Scatter(
                    x=[1 - curve.tnr],
                    y=[0.9],
                    mode="markers",
                    marker={
                        "color": OOD,
                        "size": 11,
                        "symbol": "circle-open",
                        "line": {"width": 2.5, "color": OOD},
                    },
                    hovertemplate=f"{curve.label}: of the OOD points {curve.tnr:.1%} are detected<br>when 90% of the iD "
                    "points are kept<extra></extra>",
                    showlegend=False,
                )
            )
    if operating is not None and epsilon is not None:
        figure.add_trace(_operating(selected, operating, epsilon))
    names = _names_of_curves([(curve, OOD if curve.label == selected else GREY) for curve in curves])
    if operating is not None and epsilon is not None:
        names.append(_leader(operating, (0.42, 0.72), f"epsilon = {epsilon:g}", THRESHOLD))
    return _finish_roc(figure, names, height)


def detector_curves(
    curves: Sequence[NamedCurve],
    operating: Sequence[tuple[float, float]],
    epsilon: float,
    height: int = 420,
) -> go.Figure:
    """Several detectors on one OOD set, each with the point where epsilon puts it."""
    figure, named = go.Figure(), []
    for i, (curve, point) in enumerate(zip(curves, operating, strict=True)):
        colour = DETECTORS[i % len(DETECTORS)]
        dash = ("solid", "dash", "dot")[(i // len(DETECTORS)) % 3]
        figure.add_trace(_roc_line(curve, colour, 3 if i == 0 else 2, dash))
        mark = _operating(curve.label, point, epsilon)
        mark.marker.line = {"color": colour, "width": 2}
        figure.add_trace(mark)
        named.append((curve, colour))
    return _finish_roc(figure, _names_of_curves(named), height)


def _finish_roc(figure: go.Figure, names: list[dict[str, Any]], height: int) -> go.Figure:
    figure.add_trace(
        go.Scatter(
            x=[0, 1], y=[0, 1], mode="lines", line={"color": faded(CALIBRATION, 0.6), "width": 1}, hoverinfo="skip",
            showlegend=False,
        )
    )  # fmt: skip
    layout = {
        "xaxis": {"range": [0, 1], "tickformat": ".0%"},
        "yaxis": {"range": [0, 1.005], "tickformat": ".0%"},
        "showlegend": False,
        "margin": {"t": 12, "r": 26},
        "shapes": [threshold_line(y=0.9, dash="dot", width=1)],
        "annotations": names,
    }
    return finish(figure, "OOD points let through", "iD points kept", height, layout)


def _operating(label: str, point: tuple[float, float], epsilon: float) -> go.Scatter:
    return go.Scatter(
        x=[point[0]],
        y=[point[1]],
        mode="markers",
        marker={"color": THRESHOLD, "size": 12, "symbol": "diamond"},
        hovertemplate=f"{label} at epsilon = {epsilon:g}:<br>iD kept %{{y:.2%}}, OOD let through %{{x:.2%}}<extra></extra>",
        showlegend=False,
    )


def _roc_line(curve: NamedCurve, colour: str, width: float, dash: str) -> go.Scatter:
    return go.Scatter(
        x=curve.false_positive_rate,
        y=curve.true_positive_rate,
        mode="lines",
        name=f"{curve.label} {100 * curve.auroc:.1f}",
        line={"color": colour, "width": width, "dash": dash},
        hovertemplate=f"{curve.label}<br>iD kept %{{y:.1%}}<br>OOD let through %{{x:.1%}}<extra></extra>",
    )


def _names_of_curves(curves: Sequence[tuple[NamedCurve, str]]) -> list[dict[str, Any]]:
    """Each curve's name and AUROC below the diagonal, where no good curve goes, with a thin line that leads to the curve.

    All ROC curves end in the same corner, so a name at the end would belong to all of them.
    """
    best_first = sorted(curves, key=lambda item: -item[0].auroc)
    count = max(len(best_first), 1)
    step, reach = min(NAMES_STEP, NAMES_FROM / count), min(REACH_STEP, (REACH_FROM - 0.3) / count)
    named = []
    for i, (curve, colour) in enumerate(best_first):
        # Each line is reached at a height of its own, where the eye can follow one leader at a time.
        at = int(np.argmin(np.abs(curve.true_positive_rate - (REACH_FROM - i * reach))))
        end = float(curve.false_positive_rate[at]), float(curve.true_positive_rate[at])
        name = f"{curve.label} {100 * curve.auroc:.1f}"
        named.append(_leader(end, (0.53, NAMES_FROM - (i + 0.5) * step), name, colour))
    return named


def _leader(end: tuple[float, float], text_at: tuple[float, float], text: str, colour: str) -> dict[str, Any]:
    """A name, and a thin line from it that ends in a dot."""
    return {
        "x": end[0],
        "y": end[1],
        "ax": text_at[0],
        "ay": text_at[1],
        "xref": "x",
        "yref": "y",
        "axref": "x",
        "ayref": "y",
        "xanchor": "left",
        "text": text,
        "font": {"color": colour if colour != GREY else TEXT, "size": 13},
        "showarrow": True,
        "arrowhead": 6,
        "arrowsize": 1.2,
        "arrowwidth": 1,
        "arrowcolor": colour,
    }


def methods_side_by_side(
    rows: Sequence[Row], metric: Metric, selected: str | None = None, height: int = 420
) -> go.Figure:
    """One line per OOD set, one mark per method, the paper's number beside ours; only the selected set in colour."""
    figure = go.Figure()
    labels = list(dict.fromkeys(row.label for row in rows))

    def colour(label: str) -> str:
        return OOD if selected in (None, label) else GREY

    for label in labels:
        means = [100 * _of(row, metric).mean for row in rows if row.label == label]
        figure.add_trace(
            go.Scatter(
                x=[min(means), max(means)], y=[label, label], mode="lines", hoverinfo="skip", showlegend=False,
                line={"color": faded(OOD if selected in (None, label) else CALIBRATION, 0.35), "width": 3},
            )
        )  # fmt: skip
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method]
        spread = [100 * _of(row, metric).spread for row in own]
        name = f"{method} (n = {own[0].n})"
        figure.add_trace(
            go.Scatter(
                x=[100 * _of(row, metric).mean for row in own],
                y=[row.label for row in own],
                error_x={"array": spread, "color": GREY, "thickness": 1.2},
                mode="markers",
                name=name,
                marker={
                    "color": [colour(row.label) for row in own],
                    "symbol": SYMBOLS.get(method, "square"),
                    "size": SIZES.get(method, 12),
                    "line": {"width": 2, "color": [colour(row.label) for row in own]},
                },
                customdata=[[value] for value in spread],
                hovertemplate=f"{name}, %{{y}}: %{{x:.1f}} ± %{{customdata[0]:.2f}}<extra></extra>",
            )
        )
    printed = [
        (row, row.paper_auroc if metric == "auroc" else row.paper_tnr)
        for row in rows
        if row.method == "iDECODe"
    ]
    theirs = [(row.label, number) for row, number in printed if number is not None]
    if theirs:
        figure.add_trace(
            go.Scatter(
                x=[number.mean for _, number in theirs],
                y=[label for label, _ in theirs],
                mode="markers",
                name="iDECODe in the paper",
                marker={"color": CALIBRATION, "symbol": "diamond-open", "size": 12, "line": {"width": 2}},
                customdata=[[number.table] for _, number in theirs],
                hovertemplate="the paper's %{customdata[0]}, %{y}: %{x:.1f}<extra></extra>",
            )
        )
    layout: dict[str, Any] = {"yaxis": {"categoryorder": "array", "categoryarray": labels[::-1]}}
    seen = [100 * _of(row, metric).mean for row in rows] + [number.mean for _, number in theirs]
    if max(seen) - min(seen) < NARROW:  # a close-up would make nothing of a difference look like much
        right = min((max(seen) + min(seen) + NARROW) / 2, 100 + NARROW / 20)  # nothing is above 100 percent
        layout["xaxis"] = {"range": [right - NARROW, right]}
    return finish(figure, f"{TITLES[metric]}, percent", "OOD set", height, layout)


def _of(row: Row, metric: Metric) -> Spread:
    return row.auroc if metric == "auroc" else row.tnr


def against_n(lines: Sequence[Growth], selected: str, n: int, height: int = 520) -> go.Figure:
    """AUROC and, below it, TNR as the number of transforms grows; the selected set in colour with its spread, names at the ends."""
    figure = make_subplots(rows=2, vertical_spacing=0.12)
    names: list[dict[str, Any]] = []
    ranges = {}
    for row in (1, 2):
        ends = {}
        for line in sorted(lines, key=lambda line: line.label == selected):  # the selected one on top
            chosen = line.label == selected
            mean, spread = _percent(line, row)
            ends[line.label] = float(mean[-1])
            if chosen:
                around = band(line.ns, mean - spread, mean + spread, faded(OOD, 0.15), showlegend=False)
                figure.add_trace(around, row, 1)
            figure.add_trace(_n_line(line, row, OOD if chosen else GREY, 3 if chosen else 1.5), row, 1)
            if chosen and (paper := line.paper_auroc if row == 1 else line.paper_tnr):
                figure.add_trace(_printed(line.label, paper), row, 1)
        axis = "" if row == 1 else "2"
        seen = np.concatenate(
            [np.asarray(trace.y, dtype=float) for trace in figure.data if trace.yaxis == f"y{axis}"]
        )
        low, high = float(seen.min()), float(seen.max())
        room = max(high - low, 1.0)
        ranges[row] = [low - 0.08 * room, high + 0.08 * room]
        names += _names_at_ends(ends, selected, max(lines[0].ns), 0.09 * room, axis)
    across = {"range": [0.5, max(lines[0].ns) + 0.3]}  # names are in the margin
    layout = {
        "xaxis": across,
        "xaxis2": across,
        "yaxis": {"range": ranges[1]},
        "yaxis2": {"title": {"text": f"{TITLES['tnr']}, percent"}, "range": ranges[2]},
        "showlegend": False,
        "margin": {"t": 12, "r": 118},
        "annotations": names,
        "shapes": [threshold_line(x=n, dash="dot", width=1, axis=axis) for axis in ("", "2")],
    }
    return finish(figure, "transforms, n", f"{TITLES['auroc']}, percent", height, layout)


def _names_at_ends(
    ends: dict[str, float], selected: str, x: float, gap: float, axis: str
) -> list[dict[str, Any]]:
    """Names right of the ends of lines, at least `gap` apart."""
    heights = apart(list(ends.values()), gap)
    return [
        {
            "x": x,
            "y": y,
            "xref": f"x{axis}",
            "yref": f"y{axis}",
            "xanchor": "left",
            "xshift": 6,
            "text": label,
            "showarrow": False,
            "font": {"color": OOD if label == selected else TEXT, "size": 12},
        }
        for label, y in zip(ends, heights, strict=True)
    ]


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights in the same order, moved as little as need be until all are at least `gap` apart.

    >>> apart([1.0, 5.0, 1.0], gap=1.0)
    [0.5, 5.0, 1.5]
    """
    order = np.argsort(heights, kind="stable")
    groups: list[list[float]] = []  # [middle, members], each group gap apart inside
    for i in order:
        groups.append([float(heights[i]), 1])
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < gap * (groups[-1][1] + groups[-2][1]) / 2:
            (upper, many), (lower, few) = groups.pop(), groups.pop()
            groups.append([(upper * many + lower * few) / (many + few), many + few])
    placed = [
        middle + gap * (place - (members - 1) / 2)
        for middle, members in groups
        for place in range(int(members))
    ]
    result = np.empty(len(heights))
    result[order] = placed
    return [float(height) for height in result]


def _percent(line: Growth, row: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and spreads: AUROC in row 1, TNR in row 2."""
    metrics = [evaluation.auroc if row == 1 else evaluation.tnr for evaluation in line.evaluations]
    return 100 * np.array([m.mean for m in metrics]), 100 * np.array([m.spread for m in metrics])


def _n_line(line: Growth, row: int, colour: str, width: float) -> go.Scatter:
    mean, spread = _percent(line, row)
    return go.Scatter(
        x=line.ns,
        y=mean,
        mode="lines",
        name=line.label,
        line={"color": colour, "width": width},
        customdata=spread[:, None],
        hovertemplate=f"{line.label}, n = %{{x}}: %{{y:.1f}} ± %{{customdata[0]:.2f}}<extra></extra>",
    )


def _printed(label: str, pairs: Sequence[tuple[int, float]]) -> go.Scatter:
    return go.Scatter(
        x=[n for n, _ in pairs],
        y=[value for _, value in pairs],
        mode="markers",
        name=f"{label} in the paper",
        marker={"color": CALIBRATION, "symbol": "diamond-open", "size": 11, "line": {"width": 2}},
        hovertemplate="the paper, n = %{x}: %{y:.1f}<extra></extra>",
    )
