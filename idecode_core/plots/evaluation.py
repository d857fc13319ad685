"""How well scores separate iD from OOD: ROC curves, methods side by side, the gain with n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from scipy.optimize import isotonic_regression

from idecode_core.plots.marks import Trace, band, line, points, text_at, threshold_line
from idecode_core.plots.style import CALIBRATION, ID, OOD, OTHERS, TEXT, THRESHOLD, faded, finish

if TYPE_CHECKING:
    from idecode_core.quality.side_by_side import Growth, NamedCurve, Row

Metric = Literal["auroc", "tnr"]
TITLES = {"auroc": "AUROC", "tnr": "TNR at 90% TPR"}
SYMBOLS = {"base score": "line-ns-open", "ICAD": "circle-open", "iDECODe": "circle"}
NARROW = 4.0  # percent
SIZES = {"base score": 19, "ICAD": 14, "iDECODe": 7}  # all three are seen where they coincide
GREY = faded(CALIBRATION, 0.8)
PRINTED = {"color": CALIBRATION, "symbol": "diamond-open", "line": {"width": 2}}
"""How the paper's numbers look."""
DETECTORS = (OOD, ID, *OTHERS)
"""Colours of several curves in one figure, one for each of the six OOD sets; from the seventh on they come again, with other dashes."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
HUGGING = 0.97  # an AUROC above which a curve hardly leaves the corner


def roc_curves(
    curves: Sequence[NamedCurve],
    selected: str,
    operating: tuple[float, float] | None = None,
    epsilon: float | None = None,
) -> go.Figure:
    """One line per OOD set, the selected one in front, with its TNR at 90% TPR and where epsilon puts it (`operating`)."""
    figure = go.Figure()
    colours = colours_of([curve.label for curve in curves], selected)
    for curve in sorted(curves, key=lambda curve: curve.label == selected):  # the selected one on top
        chosen = curve.label == selected
        figure.add_trace(_roc_line(curve, *colours[curve.label], width=3.5 if chosen else 1.8))
        if chosen:
            told = f"{curve.label}: of the OOD points {curve.tnr:.1%} are detected<br>when 90% of the iD points are kept"
            ring = {"width": 2.5, "color": OOD}
            mark = points(
                [1 - curve.tnr], [0.9], hover=told, color=OOD, size=11, symbol="circle-open", line=ring
            )
            figure.add_trace(mark)
    if operating is not None and epsilon is not None:
        figure.add_trace(_operating(selected, operating, epsilon))
    return _finish_roc(figure, curves)


def detector_curves(
    curves: Sequence[NamedCurve], operating: Sequence[tuple[float, float]], epsilon: float
) -> go.Figure:
    """Several detectors on one OOD set, each with the point where epsilon puts it."""
    figure = go.Figure()
    labels = [curve.label for curve in curves]
    colours = colours_of(labels, labels[0] if labels else "")
    for i, (curve, point) in enumerate(zip(curves, operating, strict=True)):
        colour, dash = colours[curve.label]
        figure.add_trace(_roc_line(curve, colour, dash, width=3.5 if i == 0 else 2))
        figure.add_trace(_operating(curve.label, point, epsilon, line={"color": colour, "width": 2}))
    return _finish_roc(figure, curves)


def colours_of(labels: Sequence[str], first: str) -> dict[str, tuple[str, str]]:
    """A colour and a dash for each curve, no two alike; the first has the colour of OOD.

    >>> len(set(colours_of("abcdefghijkl", "c").values()))
    12
    """
    looks = [
        (colour, DASHES[(turn + max(i - 2, 0)) % len(DASHES)])
        for turn in range(len(DASHES))
        for i, colour in enumerate(DETECTORS)  # of those that are near each other, one is dashed
    ]
    return dict(zip(sorted(labels, key=lambda label: label != first), looks, strict=False))


def roc_words(curves: Sequence[NamedCurve]) -> str:
    """The figure for who cannot see it: the best first."""
    best_first = sorted(curves, key=lambda curve: -curve.auroc)
    return "ROC curves, AUROC in percent: " + ", ".join(
        f"{named.label} {100 * named.auroc:.1f}" for named in best_first
    )


def _finish_roc(figure: go.Figure, curves: Sequence[NamedCurve]) -> go.Figure:
    """Names with AUROC in the corner below the diagonal, where no good curve goes. Where all curves hug the upper left corner, the
    axis of what is let through is logarithmic, and its title says so."""
    hug = bool(curves) and min(curve.auroc for curve in curves) > HUGGING
    if not hug:
        figure.add_trace(line([0, 1], [0, 1], color=faded(CALIBRATION, 0.6), width=1))
    across = {"type": "log", "range": [-3, 0], "dtick": "D2"} if hug else {"range": [0, 1]}
    layout = {
        "xaxis": {**across, "tickformat": "~%"},
        "yaxis": {"range": [0, 1.005], "tickformat": ".0%"},
        "showlegend": True,
        "legend": {
            "x": 0.99,
            "y": 0.02,
            "xanchor": "right",
            "yanchor": "bottom",
            "orientation": "v",
            "font": {"size": 13},
        },
        "margin": {"t": 12, "r": 26},
        "shapes": [threshold_line(y=0.9, dash="dot", width=1)],
    }
    title = "OOD points let through" + (" (logarithmic: all curves are close to the corner)" if hug else "")
    return finish(figure, title, "iD points kept", 420, layout)


def _operating(label: str, point: tuple[float, float], epsilon: float, **look: Any) -> Trace:
    told = f"{label} at epsilon = {epsilon:g}:<br>iD kept %{{y:.2%}}, OOD let through %{{x:.2%}}"
    return points([point[0]], [point[1]], hover=told, color=THRESHOLD, size=12, symbol="diamond", **look)


def _roc_line(curve: NamedCurve, colour: str, dash: str, width: float) -> Trace:
    told = f"{curve.label}<br>iD kept %{{y:.1%}}<br>OOD let through %{{x:.1%}}"
    x, y, name = curve.false_positive_rate, curve.true_positive_rate, f"{curve.label} {100 * curve.auroc:.1f}"
    return line(x, y, name, told, color=colour, width=width, dash=dash) | {"showlegend": True}


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
        of_method = [row for row in rows if row.method == method]
        spread = [100 * getattr(row, metric).spread for row in of_method]
        name, colours = f"{method} (n = {of_method[0].n})", [colour(row.label) for row in of_method]
        marks = points(
            [100 * getattr(row, metric).mean for row in of_method],
            [row.label for row in of_method],
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
        for curve in sorted(lines, key=lambda curve: curve.label == selected):  # the selected one on top
            chosen = curve.label == selected
            values = [getattr(evaluation, metric) for evaluation in curve.evaluations]
            mean = 100 * np.array([value.mean for value in values])
            spread = 100 * np.array([value.spread for value in values])
            ends[curve.label] = float(mean[-1])
            if chosen:
                around = band(curve.ns, mean - spread, mean + spread, faded(OOD, 0.15), showlegend=False)
                figure.add_trace(around, row, 1)
            told = f"{curve.label}, n = %{{x}}: %{{y:.1f}} ± %{{customdata[0]:.2f}}"
            colour, width = (OOD, 3) if chosen else (GREY, 1.5)
            path = line(curve.ns, mean, curve.label, told, color=colour, width=width)
            figure.add_trace(path | {"customdata": spread[:, None]}, row, 1)
            if chosen and (paper := getattr(curve, f"paper_{metric}")):
                x, y = zip(*paper, strict=True)
                told = "the paper, n = %{x}: %{y:.1f}"
                figure.add_trace(
                    points(x, y, f"{curve.label} in the paper", told, size=11, **PRINTED), row, 1
                )
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
    look = {"xref": f"x{axis}", "yref": f"y{axis}", "xanchor": "left", "xshift": 6}
    return [
        text_at(name, x, y, font={"color": OOD if name == selected else TEXT, "size": 12}, **look)
        for name, y in zip(ends, apart(list(ends.values()), gap), strict=True)
    ]


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights in the same order, moved as little as need be until all are at least `gap` apart.

    >>> apart([1.0, 5.0, 1.0], gap=1.0)
    [0.5, 5.0, 1.5]
    """
    order = np.argsort(heights, kind="stable")
    room = gap * np.arange(len(heights))  # what lies below each, where all touch
    placed = np.empty(len(heights))
    placed[order] = isotonic_regression(np.take(heights, order) - room).x + room
    return [float(height) for height in placed]
