"""How well scores separate iD from OOD: ROC curves, methods side by side, the gain with n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from idecode_core.plots.marks import band, threshold_line
from idecode_core.plots.style import CALIBRATION, OOD, THRESHOLD, faded, finish

if TYPE_CHECKING:
    from idecode_core.evaluation.methods import Metric as Spread
    from idecode_core.evaluation.side_by_side import Growth, NamedCurve, Row

Metric = Literal["auroc", "tnr"]
TITLES = {"auroc": "AUROC", "tnr": "TNR at 90% TPR"}
DASHES = ("dot", "dash", "dashdot", "longdash", "longdashdot")
SYMBOLS = {"base score": "line-ns-open", "ICAD": "circle-open", "iDECODe": "circle"}
NARROW = 4.0  # percent
SIZES = {"base score": 19, "ICAD": 14, "iDECODe": 7}  # all three are seen where they coincide


def roc_curves(curves: Sequence[NamedCurve], selected: str, height: int = 420) -> go.Figure:
    """One line per OOD set, the selected one in full colour, with its TNR at 90% TPR marked."""
    figure = go.Figure()
    others = [curve for curve in curves if curve.label != selected]
    for i, curve in enumerate(others):
        figure.add_trace(_roc_line(curve, faded(OOD, 0.75), 1.5, DASHES[i % len(DASHES)]))
    figure.add_trace(
        go.Scatter(
            x=[0, 1], y=[0, 1], mode="lines", line={"color": faded(CALIBRATION, 0.6), "width": 1}, hoverinfo="skip",
            showlegend=False,
        )
    )  # fmt: skip
    for curve in curves:
        if curve.label == selected:
            figure.add_trace(_roc_line(curve, OOD, 3, "solid"))
            figure.add_trace(
                go.Scatter(
                    x=[1 - curve.tnr],
                    y=[0.9],
                    mode="markers+text",
                    marker={"color": THRESHOLD, "size": 11},
                    text=[f"TNR {curve.tnr:.1%}"],
                    textposition="bottom right" if curve.tnr > 0.4 else "bottom left",
                    hovertemplate=f"{curve.label}: of the OOD points {curve.tnr:.1%} are detected<br>when 90% of the iD "
                    "points are kept<extra></extra>",
                    showlegend=False,
                )
            )
    layout = {
        "xaxis": {"range": [0, 1], "tickformat": ".0%"},
        "yaxis": {"range": [0, 1.005], "tickformat": ".0%"},
        "legend": {"orientation": "v", "x": 0.98, "xanchor": "right", "y": 0.03, "yanchor": "bottom", "title": {"text": "AUROC"}},
        "margin": {"t": 12, "r": 26},
        "shapes": [threshold_line(y=0.9, dash="dot", width=1)],
    }  # fmt: skip
    return finish(figure, "OOD points let through", "iD points kept", height, layout)


def _roc_line(curve: NamedCurve, colour: str, width: float, dash: str) -> go.Scatter:
    return go.Scatter(
        x=curve.false_positive_rate,
        y=curve.true_positive_rate,
        mode="lines",
        name=f"{curve.label} {100 * curve.auroc:.1f}",
        line={"color": colour, "width": width, "dash": dash},
        hovertemplate=f"{curve.label}<br>iD kept %{{y:.1%}}<br>OOD let through %{{x:.1%}}<extra></extra>",
    )


def methods_side_by_side(rows: Sequence[Row], metric: Metric, height: int = 420) -> go.Figure:
    """One line per OOD set, one mark per method, the paper's number beside ours."""
    figure = go.Figure()
    labels = list(dict.fromkeys(row.label for row in rows))
    for label in labels:
        means = [100 * _of(row, metric).mean for row in rows if row.label == label]
        figure.add_trace(
            go.Scatter(
                x=[min(means), max(means)], y=[label, label], mode="lines", hoverinfo="skip", showlegend=False,
                line={"color": faded(OOD, 0.35), "width": 3},
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
                error_x={"array": spread, "color": faded(OOD, 0.7), "thickness": 1.2},
                mode="markers",
                name=name,
                marker={
                    "color": OOD,
                    "symbol": SYMBOLS.get(method, "square"),
                    "size": SIZES.get(method, 12),
                    "line": {"width": 2, "color": OOD},
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


def against_n(lines: Sequence[Growth], selected: str, n: int, height: int = 400) -> go.Figure:
    """AUROC and TNR as the number of transforms grows; the selected set in full colour with its spread."""
    figure = make_subplots(cols=2, horizontal_spacing=0.12)
    others = [line for line in lines if line.label != selected]
    for column in (1, 2):
        for i, line in enumerate(others):
            figure.add_trace(_n_line(line, column, faded(OOD, 0.75), 1.5, DASHES[i % len(DASHES)]), 1, column)
        for line in lines:
            if line.label == selected:
                mean, spread = _percent(line, column)
                around = band(line.ns, mean - spread, mean + spread, faded(OOD, 0.15), showlegend=False)
                figure.add_trace(around, 1, column)
                figure.add_trace(_n_line(line, column, OOD, 3, "solid"), 1, column)
                if paper := line.paper_auroc if column == 1 else line.paper_tnr:
                    figure.add_trace(_printed(line.label, paper, column == 1), 1, column)
    layout = {
        "yaxis2": {"title": {"text": f"{TITLES['tnr']}, percent"}},
        "shapes": [threshold_line(x=n, dash="dot", width=1, axis=axis) for axis in ("", "2")],
    }
    return finish(figure, "transforms, n", f"{TITLES['auroc']}, percent", height, layout)


def _percent(line: Growth, column: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and spreads: AUROC in column 1, TNR in column 2."""
    metrics = [evaluation.auroc if column == 1 else evaluation.tnr for evaluation in line.evaluations]
    return 100 * np.array([m.mean for m in metrics]), 100 * np.array([m.spread for m in metrics])


def _n_line(line: Growth, column: int, colour: str, width: float, dash: str) -> go.Scatter:
    mean, spread = _percent(line, column)
    return go.Scatter(
        x=line.ns,
        y=mean,
        mode="lines",
        name=line.label,
        legendgroup=line.label,
        showlegend=column == 1,
        line={"color": colour, "width": width, "dash": dash},
        customdata=spread[:, None],
        hovertemplate=f"{line.label}, n = %{{x}}: %{{y:.1f}} ± %{{customdata[0]:.2f}}<extra></extra>",
    )


def _printed(label: str, pairs: Sequence[tuple[int, float]], showlegend: bool) -> go.Scatter:
    return go.Scatter(
        x=[n for n, _ in pairs],
        y=[value for _, value in pairs],
        mode="markers",
        name=f"{label} in the paper",
        showlegend=showlegend,
        marker={"color": CALIBRATION, "symbol": "diamond-open", "size": 11, "line": {"width": 2}},
        hovertemplate="the paper, n = %{x}: %{y:.1f}<extra></extra>",
    )
