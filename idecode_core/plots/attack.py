"""An attacked picture beside the clean one: what was changed, what the victim says, and what the detector sees of it.

Clean and attacked have colours of their own: blue and vermillion are kept for what the detector says.
"""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idecode_core.plots.inspect import LEFT, dots, over_calibration, p_layout, p_line
from idecode_core.plots.marks import points
from idecode_core.plots.style import OTHERS, finish

Floats = NDArray[np.float64]
FACTORS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
ROUNDING = 1e-3  # of floats, so that 0.05 counts as 0.05
CLEAN, ATTACKED = OTHERS[2], OTHERS[1]
BESIDE = 0.12  # draws: the two of one draw stand side by side, so that neither hides the other
LONGEST_NAME = 24  # characters of a class beside its bars


def as_pixels(x: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Floats (3, h, w) in [0, 1] -> uint8 (h, w, 3), for the eye only: scorers get the floats."""
    pixels: NDArray[np.uint8] = np.round(np.clip(x, 0, 1) * 255).astype(np.uint8)
    return pixels.transpose(1, 2, 0)


def magnified(clean: NDArray[np.floating], attacked: NDArray[np.floating]) -> tuple[NDArray[np.uint8], int]:
    """attacked - clean (3, h, w), times a round factor, around mid-grey; and the factor.

    The largest factor that clips nothing, so that no part of the change looks smaller than it is.

    >>> magnified(np.zeros((3, 8, 8)), np.full((3, 8, 8), 0.04))[1]
    10
    """
    change = attacked.astype(np.float64) - clean
    most = float(np.abs(change).max())
    factor = max((factor for factor in FACTORS if factor * most <= 0.5 + ROUNDING), default=1)
    return as_pixels(0.5 + factor * change), factor


def class_shares(classes: Sequence[str], before: Floats, after: Floats, shown: int = 3) -> go.Figure:
    """The victim's shares of its top classes, before and after: each (classes,), adding up to 1."""
    top = sorted({*np.argsort(-before)[:shown].tolist(), *np.argsort(-after)[:shown].tolist()})
    order = sorted(top, key=lambda i: (after[i], before[i]))  # the largest after the attack on top
    names = [classes[i][:LONGEST_NAME] for i in order]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": names,
            "x": 100 * shares[order],
            "marker": {"color": colour, "line": {"width": 0}},
            "hovertemplate": f"{name}: %{{y}} %{{x:.3g}} %<extra></extra>",
        }
        for name, shares, colour in (("attacked", after, ATTACKED), ("clean", before, CLEAN))
    ]
    layout = {
        "barmode": "group",
        "bargap": 0.25,
        "legend": {"traceorder": "reversed"},
        "xaxis": {"range": [0, 103], "ticksuffix": " %"},
        "yaxis": {"showgrid": False, "title": {"text": ""}},
    }
    return finish(go.Figure(traces), "Share that the victim gives the class", "", 320, layout)


def draws_before_and_after(
    clean: Floats, attacked: Floats, calibration_base_scores: Floats, words: Sequence[Sequence[str]] = ()
) -> go.Figure:
    """Scores (n,) of single draws of the clean and of the attacked picture, over the calibration set's middle 90 %.

    `words` says for both pictures what each draw was, for the pointer.
    """
    _, (clean, attacked), traces, layout = over_calibration([clean, attacked], calibration_base_scores)
    for i, (name, scores, colour, symbol, shift) in enumerate(
        (("clean", clean, CLEAN, "circle", -BESIDE), ("attacked", attacked, ATTACKED, "diamond", BESIDE))
    ):
        draws = np.arange(1, len(scores) + 1)
        told = f"{name}, draw %{{customdata}}<br>score %{{y:.3g}}{'<br>%{text}' if words else ''}"
        text = list(words[i][: len(scores)]) if words else None
        marks = points(draws + shift, scores, name, told, color=colour, symbol=symbol, size=11)
        traces.append(marks | {"customdata": draws, "text": text})
    layout["legend"] = {"traceorder": "normal"}
    return finish(go.Figure(traces), "Draw", "Score of one draw", 320, layout, LEFT)


def p_along_strength(
    strengths: Sequence[float],
    p_values: Floats,
    is_fooled: NDArray[np.bool_],
    epsilon: float,
    chosen: float,
    title: str,
) -> go.Figure:
    """The p-value at each strength; full dots where the victim is fooled, rings where it is not.

    Strengths are steps of equal width, as on the slider: each doubles the one before, and zero has no logarithm.
    """
    places = [f"{strength:g}" for strength in strengths]
    marked = np.array([strength == chosen for strength in strengths])
    marker = dots(p_values < epsilon, marked, 11, 16)
    marker["symbol"] = ["circle" if fooled else "circle-open" for fooled in is_fooled]
    marker["line"] = {**marker["line"], "width": np.where(is_fooled, marker["line"]["width"], 3)}
    text = ["victim fooled" if fooled else "victim not fooled" for fooled in is_fooled]
    trace = p_line(places, p_values, "strength %{x}<br>p = %{y:.3g}<br>%{text}", marker) | {"text": text}
    layout = p_layout(p_values, epsilon) | {"xaxis": {"type": "category", "showgrid": False}}
    return finish(go.Figure([trace]), title, "p-value", 300, layout, LEFT)
