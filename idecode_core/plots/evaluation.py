"""How well scores separate iD from OOD: ROC curves, methods side by side, the gain with n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from idecode_core.plots.marks import Trace, band, line, points, threshold_line
from idecode_core.plots.style import CALIBRATION, ID, OOD, OTHERS, TEXT, THRESHOLD, faded, finish

if TYPE_CHECKING:
    from idecode_core.evaluation.side_by_side import Growth, NamedCurve, Row

Metric = Literal["auroc", "tnr"]
TITLES = {"auroc": "AUROC", "tnr": "TNR at 90% TPR"}
SYMBOLS = {"base score": "line-ns-open", "ICAD": "circle-open", "iDECODe": "circle"}
NARROW = 4.0  # percent
SIZES = {"base score": 19, "ICAD": 14, "iDECODe": 7}  # all three are seen where they coincide
GREY = faded(CALIBRATION, 0.8)
PRINTED = {"color": CALIBRATION, "symbol": "diamond-open", "line": {"width": 2}}
"""How the paper's numbers look."""
DETECTORS = (OOD, ID, *OTHERS[:3])
"""Colours of several detectors in one figure; from the sixth on they come again, with dashes."""
NAMES_FROM, NAMES_STEP = 0.5, 0.068  # of the plot's height: one line of text
REACH_FROM, REACH_STEP = 0.84, 0.09  # where the lines to the names begin


def roc_curves(
    curves: Sequence[NamedCurve],
    selected: str,
    operating: tuple[float, float] | None = None,
    epsilon: float | None = None,
) -> go.Figure:
    """One line per OOD set, the selected one in colour, with its TNR at 90% TPR and where epsilon puts it (`operating`)."""
    figure = go.Figure()
    for curve in sorted(curves, key=lambda curve: curve.label == selected):  # the selected one on top
        chosen = curve.label == selected
        figure.add_trace(_roc_line(curve, OOD if chosen else GREY, 3 if chosen else 1.5, "solid"))
        if chosen:
            told = f"{curve.label}: of the OOD points {curve.tnr:.1%} are detected<br>when 90% of the iD points are kept"
            ring = {"width": 2.5, "color": OOD}
            mark = points(
                [1 - curve.tnr], [0.9], hover=told, color=OOD, size=11, symbol="circle-open", line=ring
            )
            figure.add_trace(mark)
    names = _names_of_curves([(curve, OOD if curve.label == selected else GREY) for curve in curves])
    if operating is not None and epsilon is not None:
        figure.add_trace(_operating(selected, operating, epsilon))
        names.append(_leader(operating, (0.42, 0.72), f"epsilon = {epsilon:g}", THRESHOLD))
    return _finish_roc(figure, names)


def detector_curves(
    curves: Sequence[NamedCurve], operating: Sequence[tuple[float, float]], epsilon: float
) -> go.Figure:
    """Several detectors on one OOD set, each with the point where epsilon puts it."""
    figure, named = go.Figure(), []
    for i, (curve, point) in enumerate(zip(curves, operating, strict=True)):
        colour = DETECTORS[i % len(DETECTORS)]
        dash = ("solid", "dash", "dot")[(i // len(DETECTORS)) % 3]
        figure.add_trace(_roc_line(curve, colour, 3 if i == 0 else 2, dash))
        figure.add_trace(_operating(curve.label, point, epsilon, line={"color": colour, "width": 2}))
        named.append((curve, colour))
    return _finish_roc(figure, _names_of_curves(named))


def _finish_roc(figure: go.Figure, names: list[dict[str, Any]]) -> go.Figure:
    figure.add_trace(line([0, 1], [0, 1], color=faded(CALIBRATION, 0.6), width=1))
    layout = {
        "xaxis": {"range": [0, 1], "tickformat": ".0%"},
        "yaxis": {"range": [0, 1.005], "tickformat": ".0%"},
        "showlegend": False,
        "margin": {"t": 12, "r": 26},
        "shapes": [threshold_line(y=0.9, dash="dot", width=1)],
        "annotations": names,
    }
    return finish(figure, "OOD points let through", "iD points kept", 420, layout)


def _operating(label: str, point: tuple[float, float], epsilon: float, **look: Any) -> Trace:
    told = f"{label} at epsilon = {epsilon:g}:<br>iD kept %{{y:.2%}}, OOD let through %{{x:.2%}}"
    return points([point[0]], [point[1]], hover=told, color=THRESHOLD, size=12, symbol="diamond", **look)


def _roc_line(curve: NamedCurve, colour: str, width: float, dash: str) -> Trace:
    told = f"{curve.label}<br>iD kept %{{y:.1%}}<br>OOD let through %{{x:.1%}}"
    x, y, name = curve.false_positive_rate, curve.true_positive_rate, f"{curve.label} {100 * curve.auroc:.1f}"
    return line(x, y, name, told, color=colour, width=width, dash=dash)


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
        means = [100 * getattr(row, metric).mean for row in rows if row.label == label]
        faint = faded(OOD if selected in (None, label) else CALIBRATION, 0.35)
        figure.add_trace(line([min(means), max(means)], [label, label], color=faint, width=3))
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method]
        spread = [100 * getattr(row, metric).spread for row in own]
        name, colours = f"{method} (n = {own[0].n})", [colour(row.label) for row in own]
        marks = points(
            [100 * getattr(row, metric).mean for row in own],
            [row.label for row in own],
            name,
            f"{name}, %{{y}}: %{{x:.1f}} ± %{{customdata[0]:.2f}}",
            color=colours,
            symbol=SYMBOLS.get(method, "square"),
            size=SIZES.get(method, 12),
            line={"width": 2, "color": colours},
        )
        error = {"array": spread, "color": GREY, "thickness": 1.2}
        figure.add_trace(marks | {"error_x": error, "customdata": [[value] for value in spread]})
    printed = [(row.label, getattr(row, f"paper_{metric}")) for row in rows if row.method == "iDECODe"]
    theirs = [(label, number) for label, number in printed if number is not None]
    if theirs:
        x, y = [number.mean for _, number in theirs], [label for label, _ in theirs]
        told = "the paper's %{customdata[0]}, %{y}: %{x:.1f}"
        marks = points(x, y, "iDECODe in the paper", told, size=12, **PRINTED)
        figure.add_trace(marks | {"customdata": [[number.table] for _, number in theirs]})
    layout: dict[str, Any] = {"yaxis": {"categoryorder": "array", "categoryarray": labels[::-1]}}
    seen = [100 * getattr(row, metric).mean for row in rows] + [number.mean for _, number in theirs]
    if max(seen) - min(seen) < NARROW:  # a close-up would make nothing of a difference look like much
        right = min((max(seen) + min(seen) + NARROW) / 2, 100 + NARROW / 20)  # nothing is above 100 percent
        layout["xaxis"] = {"range": [right - NARROW, right]}
    return finish(figure, f"{TITLES[metric]}, percent", "OOD set", height, layout)


def against_n(lines: Sequence[Growth], selected: str, n: int) -> go.Figure:
    """AUROC and, below it, TNR as the number of transforms grows; the selected set in colour with its spread, names at the ends."""
    figure = make_subplots(rows=2, vertical_spacing=0.12)
    names: list[dict[str, Any]] = []
    ranges = {}
    for row, metric in enumerate(TITLES, start=1):
        ends = {}
        for one in sorted(lines, key=lambda one: one.label == selected):  # the selected one on top
            chosen = one.label == selected
            found = [getattr(evaluation, metric) for evaluation in one.evaluations]
            mean = 100 * np.array([value.mean for value in found])
            spread = 100 * np.array([value.spread for value in found])
            ends[one.label] = float(mean[-1])
            if chosen:
                around = band(one.ns, mean - spread, mean + spread, faded(OOD, 0.15), showlegend=False)
                figure.add_trace(around, row, 1)
            told = f"{one.label}, n = %{{x}}: %{{y:.1f}} ± %{{customdata[0]:.2f}}"
            colour, width = (OOD, 3) if chosen else (GREY, 1.5)
            path = line(one.ns, mean, one.label, told, color=colour, width=width)
            figure.add_trace(path | {"customdata": spread[:, None]}, row, 1)
            if chosen and (paper := getattr(one, f"paper_{metric}")):
                x, y = zip(*paper, strict=True)
                told = "the paper, n = %{x}: %{y:.1f}"
                figure.add_trace(points(x, y, f"{one.label} in the paper", told, size=11, **PRINTED), row, 1)
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
    return finish(figure, "transforms, n", f"{TITLES['auroc']}, percent", 520, layout)


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
