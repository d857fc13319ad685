"""How a training run went: loss on the proper training set and on its validation part, epoch by epoch."""

from collections.abc import Mapping, Sequence
from typing import Any

from idecode_core.plots.style import ID, OOD, THRESHOLD
from idecode_core.plots.svg import Line, chart

Entry = Mapping[str, Any]
"""One line of a run's log.jsonl: epoch (from 0), loss, and where there is a validation part validation_loss."""


def learning_curve_svg(log: Sequence[Entry], kept: int, name: str) -> str:
    """Loss by epoch as a small self-contained SVG, to lie beside the weights; the kept epoch (from 0) is marked."""
    epochs = [int(entry["epoch"]) + 1.0 for entry in log]
    training = [float(entry["loss"]) for entry in log]
    validation = [float(e["validation_loss"]) for e in log if e.get("validation_loss") is not None]
    lowest, highest = min(training + validation), max(training + validation)
    lines = [Line("training", epochs, training, ID)]
    if validation:  # there is none for sounds
        lines.append(Line("validation", epochs, validation, OOD))
    lines.append(Line("kept epoch", [kept + 1.0] * 2, [lowest, highest], THRESHOLD, dash="3 3"))
    return chart(lines, title=name, x_title="epoch", y_title="loss")
