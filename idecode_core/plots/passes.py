"""How good a method is against what it costs: passes through a network per picture."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from idecode_core.plots.marks import line, points
from idecode_core.plots.style import CALIBRATION, OTHERS, finish
from idecode_core.quality.cost import Costed, front

FLOOR = 70  # percent
LOOKS = {False: ("iDECODe", OTHERS[0], "circle"), True: ("other methods", OTHERS[1], "diamond")}
"""Of ours and of rivals; colours that mean neither iD nor OOD."""


def auroc_against_passes(methods: Sequence[Costed], height: int = 420) -> go.Figure:
    """One mark per method, and the front: steps that no method is above at that many passes. Names stand at the front's."""
    best = front(methods, lambda one: one.passes, lambda one: one.mean)
    x: list[float] = []
    y: list[float] = []
    for one in best:
        x += [one.passes, one.passes] if y else [one.passes]
        y += [y[-1], one.mean] if y else [one.mean]
    most = max(one.passes for one in methods)
    steps = line([*x, most], [*y, y[-1]], "no method is above", color=CALIBRATION, width=1.5, dash="dash")
    traces = [steps | {"showlegend": True}]
    for is_rival, (name, colour, symbol) in LOOKS.items():
        own = [one for one in methods if one.is_rival == is_rival]
        told = "%{customdata[0]}<br>%{x:g} passes per picture<br>mean AUROC %{y:.1f}"
        marks = points(
            [one.passes for one in own], [one.mean for one in own], name, told,
            color=colour, symbol=symbol, size=11,
        )  # fmt: skip
        traces.append(marks | {"customdata": [[one.title] for one in own]})
    names = [
        {
            "x": math.log10(one.passes),  # on a logarithmic axis a label stands at the power of ten
            "y": one.mean,
            "text": one.title,
            "showarrow": False,
            "yshift": 14,
            "xanchor": "left",
            "xshift": -6,
            "font": {"size": 12},
        }
        for one in best
    ]
    low = [one for one in methods if one.mean < FLOOR]
    if low:  # one method far below would press all others together; it is named in place of being drawn
        words = "below the axis: " + ", ".join(f"{one.title} {one.mean:.1f}" for one in low)
        names.append(
            {
                "x": 0.01,
                "y": 0.02,
                "xref": "paper",
                "yref": "paper",
                "text": words,
                "showarrow": False,
                "xanchor": "left",
            }
        )
    top = max(one.mean for one in methods)
    layout = {
        "yaxis": {"range": [min(FLOOR, top) if low else None, top + 2]},
        "xaxis": {"type": "log", "tickvals": [1, 2, 5, 10, 20, 50, 100, 200]},
        "annotations": names,
        "margin": {"r": 90},
    }
    return finish(
        go.Figure(traces),
        "passes per picture (logarithmic; a backward pass counts as two)",
        f"mean AUROC of {len(methods[0].aurocs)} OOD sets, percent",
        height,
        layout,
    )


def passes_words(methods: Sequence[Costed]) -> str:
    """The front for who cannot see it, the cheapest first."""
    best = front(methods, lambda one: one.passes, lambda one: one.mean)
    return "Mean AUROC against passes per picture. No method is above these: " + ", ".join(
        f"{one.title} {one.mean:.1f} with {one.passes:g}" for one in best
    )
