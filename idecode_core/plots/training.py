"""How a training run went: loss on the proper training set and on its validation part, epoch by epoch."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from idecode_core.plots.style import ID, OOD, THRESHOLD, finish
from idecode_core.plots.svg import Line, chart

Entry = Mapping[str, Any]
"""One line of a run's log.jsonl: epoch (from 0), loss, validation_loss, validation_accuracy, seconds."""


def best_epoch(log: Sequence[Entry]) -> int:
    """The epoch whose model was kept, counted from 1: the lowest validation loss."""
    return 1 + min(range(len(log)), key=lambda i: float(log[i]["validation_loss"]))


def learning_curve(log: Sequence[Entry]) -> go.Figure:
    """Loss by epoch; the kept epoch is marked."""
    epochs = [int(entry["epoch"]) + 1 for entry in log]
    figure = go.Figure()
    for key, name, colour in (
        ("loss", "proper training set", ID),
        ("validation_loss", "validation part", OOD),
    ):
        values = [float(entry[key]) for entry in log]
        figure.add_scatter(x=epochs, y=values, name=name, mode="lines+markers", line={"color": colour})
    if log:
        figure.add_vline(x=best_epoch(log), line={"color": THRESHOLD, "dash": "dot"}, annotation_text="kept")
    return finish(figure, "epoch", "loss")


def learning_curve_svg(log: Sequence[Entry], name: str) -> str:
    """The same as a small self-contained SVG, to lie beside the weights."""
    epochs = [int(entry["epoch"]) + 1.0 for entry in log]
    training = [float(entry["loss"]) for entry in log]
    validation = [float(entry["validation_loss"]) for entry in log]
    kept = float(best_epoch(log))
    lowest, highest = min(training + validation), max(training + validation)
    lines = [
        Line("training", epochs, training, ID),
        Line("validation", epochs, validation, OOD),
        Line("kept epoch", [kept, kept], [lowest, highest], THRESHOLD, dash="3 3"),
    ]
    return chart(lines, title=name, x_title="epoch", y_title="loss")
