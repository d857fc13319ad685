"""A vector as a small inline SVG: one bar per entry, so that a table cell can show a score vector."""

from collections.abc import Sequence

BAR, GAP, HEIGHT = 5, 2, 24


def sparkline(values: Sequence[float]) -> str:
    """Bars from zero, scaled to the largest entry; the exact values are in the tooltip.

    >>> sparkline([1.0, 2.0]).count("<rect")
    2
    """
    top = max((abs(value) for value in values), default=0.0) or 1.0
    bars = []
    for i, value in enumerate(values):
        height = max(HEIGHT * abs(value) / top, 1.0)
        bars.append(
            f'<rect x="{i * (BAR + GAP)}" y="{HEIGHT - height:.1f}" width="{BAR}" height="{height:.1f}"/>'
        )
    width = max(len(values) * (BAR + GAP) - GAP, 1)
    tooltip = ", ".join(f"{value:.3g}" for value in values)
    return (
        f'<svg class="spark" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}" role="img" '
        f'aria-label="{tooltip}"><title>{tooltip}</title>{"".join(bars)}</svg>'
    )
