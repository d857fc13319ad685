"""Small static charts as SVG text, for files that are read without a program: cards, RESULTS.md, training folders.

Plotly needs a browser to draw; these few lines do not. The app and the notebooks use Plotly.

How a training run went: loss on the proper training set and on its validation part, epoch by epoch.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from idecode_core.plots.style import CALIBRATION, ID, OOD, TEXT, THRESHOLD

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 30, 44


@dataclass(frozen=True)
class Line:
    """One line of a chart; with `low` and `high`, a faint band around it; with `points`, marks in place of the line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dash: str = ""
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    points: bool = False


@dataclass(frozen=True)
class Box:
    """A box of a box plot: whisker ends, quartiles and median at place x."""

    x: float
    values: tuple[float, float, float, float, float]
    """Lowest, lower quartile, median, upper quartile, highest."""
    colour: str


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers that cover [low, high] in about `count` steps.

    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    raw = ((high - low) or 1.0) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def chart(
    lines: Sequence[Line],
    *,
    title: str,
    x_title: str,
    y_title: str,
    boxes: Sequence[Box] = (),
    width: int = WIDTH,
) -> str:
    """A chart of lines and boxes as a self-contained SVG."""
    xs = [x for line in lines for x in line.x] + [box.x for box in boxes]
    ys = [y for line in lines for y in (*line.y, *line.low, *line.high)] + [
        y for box in boxes for y in box.values
    ]
    x_low, x_high = min(xs), max(xs)
    y_low, y_high = min(ys), max(ys)
    if boxes:
        margin = (x_high - x_low) / max(len(boxes), 1)
        x_low, x_high = x_low - margin, x_high + margin
    x_span, y_span = (x_high - x_low) or 1.0, (y_high - y_low) or 1.0

    def px(x: float) -> str:
        return f"{LEFT + (x - x_low) / x_span * (width - LEFT - RIGHT):.1f}"

    def py(y: float) -> str:
        return f"{HEIGHT - BOTTOM - (y - y_low) / y_span * (HEIGHT - TOP - BOTTOM):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" '
        f'font-family="Segoe UI, Helvetica, Arial, sans-serif" font-size="12" fill="{TEXT}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<text x="{LEFT}" y="16" font-weight="600">{escape(title)}</text>',
    ]
    for y in ticks(y_low, y_high):
        parts.append(
            f'<path d="M{LEFT} {py(y)}H{width - RIGHT}" stroke="{CALIBRATION}" stroke-opacity="0.3"/>'
        )
        parts.append(f'<text x="{LEFT - 6}" y="{py(y)}" dy="4" text-anchor="end">{y:g}</text>')
    for x in ticks(x_low, x_high, 8):
        parts.append(f'<text x="{px(x)}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{x:g}</text>')
    middle = (LEFT + width - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_title)}</text>')
    parts.append(
        f'<text transform="translate(13 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_title)}</text>"
    )
    for line in lines:
        if line.low:
            there = [f"{px(x)} {py(y)}" for x, y in zip(line.x, line.high, strict=True)]
            back = [f"{px(x)} {py(y)}" for x, y in zip(line.x, line.low, strict=True)][::-1]
            parts.append(f'<path d="M{"L".join(there + back)}Z" fill="{line.colour}" fill-opacity="0.18"/>')
    half = 0.28 * (width - LEFT - RIGHT) / max(len(boxes) + 1, 2)
    for box in boxes:
        x = float(px(box.x))
        lowest, lower, median, upper, highest = (py(value) for value in box.values)
        tall = max(float(lower) - float(upper), 0.5)
        parts.append(
            f'<path d="M{x} {lowest}V{lower}M{x} {upper}V{highest}" stroke="{box.colour}"/>'
            f'<rect x="{x - half:.1f}" y="{upper}" width="{2 * half:.1f}" height="{tall:.1f}" fill="{box.colour}" '
            f'fill-opacity="0.25" stroke="{box.colour}"/>'
            f'<path d="M{x - half:.1f} {median}H{x + half:.1f}" stroke="{box.colour}" stroke-width="2"/>'
        )
    for line in lines:
        if line.points:
            parts += [
                f'<circle cx="{px(x)}" cy="{py(y)}" r="4" fill="{line.colour}"/>'
                for x, y in zip(line.x, line.y, strict=True)
            ]
            continue
        points = "L".join(f"{px(x)} {py(y)}" for x, y in zip(line.x, line.y, strict=True))
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        parts.append(f'<path d="M{points}" fill="none" stroke="{line.colour}" stroke-width="2"{dash}/>')
    parts += _legend(lines, width)
    return "\n".join([*parts, "</svg>\n"])


def grid(charts: Sequence[str], columns: int, width: int) -> str:
    """Charts of one size, side by side and below each other, as one SVG."""
    rows = -(-len(charts) // columns)
    placed = [
        svg.replace("<svg ", f'<svg x="{width * (i % columns)}" y="{HEIGHT * (i // columns)}" ', 1)
        for i, svg in enumerate(charts)
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * columns} {HEIGHT * rows}" role="img">'
    )
    return "\n".join([head, *placed, "</svg>\n"])


def _legend(lines: Sequence[Line], width: int) -> list[str]:
    """Names of the lines, right to left along the title's row."""
    parts, x = [], float(width - RIGHT)
    for line in reversed([line for line in lines if line.name]):
        x -= 7.2 * len(line.name) + 30
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        parts.append(
            f'<path d="M{x:.0f} 12h16" stroke="{line.colour}" stroke-width="3"{dash}/>'
            f'<text x="{x + 20:.0f}" y="16">{escape(line.name)}</text>'
        )
    return parts


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
