"""How good a method is against what it costs: passes through a network per picture."""

import math
from collections.abc import Sequence
from itertools import product

import plotly.graph_objects as go

from idecode_core.plots.marks import line, points, text_at
from idecode_core.plots.style import CALIBRATION, OTHERS, finish
from idecode_core.quality.cost import Costed, front

FLOOR = 70  # percent
LOOKS = {False: ("iDECODe", OTHERS[0], "circle"), True: ("other methods", OTHERS[1], "diamond")}
"""Of ours and of rivals; colours that mean neither iD nor OOD."""


def auroc_against_passes(methods: Sequence[Costed]) -> go.Figure:
    """One mark per method, and the front: steps that no method is above at that many passes. Names stand at the front's."""
    best = front(methods, lambda method: method.passes, lambda method: method.mean)
    x: list[float] = []
    y: list[float] = []
    for method in best:
        x += [method.passes, method.passes] if y else [method.passes]
        y += [y[-1], method.mean] if y else [method.mean]
    most = max(method.passes for method in methods)
    steps = line([*x, most], [*y, y[-1]], "no method is above", color=CALIBRATION, width=1.5, dash="dash")
    traces = [steps | {"showlegend": True}]
    for (is_rival, (name, colour, symbol)), imagenet in product(LOOKS.items(), (False, True)):
        shown = [method for method in methods if (method.is_rival, method.imagenet) == (is_rival, imagenet)]
        if imagenet:  # hollow: not to be compared with the others
            name, symbol = f"{name}, after ImageNet", f"{symbol}-open"
        if not shown:
            continue
        told = "%{customdata[0]}<br>%{x:g} passes per picture<br>mean AUROC %{y:.1f}"
        marks = points(
            [method.passes for method in shown], [method.mean for method in shown], name, told,
            color=colour, symbol=symbol, size=11, line={"width": 2, "color": colour} if imagenet else {},
        )  # fmt: skip
        traces.append(marks | {"customdata": [[method.title] for method in shown]})
    look = {"xanchor": "left", "xshift": -6, "font": {"size": 12}}
    # on a logarithmic axis a label stands at the power of ten; three rows, so that neighbours do not cover each other
    names = [
        text_at(method.title, math.log10(method.passes), method.mean, yshift=14 + 15 * (i % 3), **look)
        for i, method in enumerate(best)
    ]
    low = [method for method in methods if method.mean < FLOOR]
    if low:  # one method far below would press all others together; it is named in place of being drawn
        words = "below the axis: " + ", ".join(f"{method.title} {method.mean:.1f}" for method in low)
        names.append(text_at(words, 0.01, 0.02, xref="paper", yref="paper", xanchor="left"))
    top = max(method.mean for method in methods)
    layout = {
        "yaxis": {"range": [min(FLOOR, top) if low else None, top + 6]},
        "xaxis": {"type": "log", "tickvals": [1, 2, 5, 10, 20, 50, 100, 200]},
        "annotations": names,
        "margin": {"r": 90},
    }
    return finish(
        go.Figure(traces),
        "passes per picture (logarithmic; a backward pass counts as two)",
        f"mean AUROC of {len(methods[0].aurocs)} OOD sets, percent",
        420,
        layout,
    )


def passes_words(methods: Sequence[Costed]) -> str:
    """The front for who cannot see it, the cheapest first."""
    best = front(methods, lambda method: method.passes, lambda method: method.mean)
    return "Mean AUROC against passes per picture. No method is above these: " + ", ".join(
        f"{method.title} {method.mean:.1f} with {method.passes:g}" for method in best
    )
