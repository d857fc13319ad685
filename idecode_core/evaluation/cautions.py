"""What may be wrong with a user's own scores, in sentences: sets too small to tell, scores upside down, row numbers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from idecode_core.evaluation.operating import OperatingPoint

TINY = 30
"""Below this many points an AUROC is mostly chance: its interval is wider than 20 points."""


def counting_columns(score_vectors: NDArray[np.floating]) -> list[int]:
    """Columns that only count the rows (0, 1, 2, ... or 1, 2, 3, ...): row numbers, not scores."""
    if len(score_vectors) < 3:
        return []
    steps = np.diff(score_vectors, axis=0)
    starts = score_vectors[0]
    return [int(i) for i in np.flatnonzero((steps == 1).all(axis=0) & ((starts == 0) | (starts == 1)))]


def columns_used(name: str, titles: Sequence[str], count: int, n: int) -> str:
    """Which columns of a file an evaluation with n draws uses.

    >>> columns_used("id.csv", ["a", "b", "c"], 3, 2)
    'id.csv: columns a, b of 3, the first 2'
    """
    names = list(titles) or [str(i + 1) for i in range(count)]
    shown = ", ".join(names[:n]) if n <= 6 else f"{names[0]} to {names[n - 1]}"
    word = "column" if n == 1 else "columns"
    return f"{name}: {word} {shown}" + (f" of {count}, the first {n}" if n < count else "")


def cautions(
    sizes: dict[str, int], auroc: float, interval: tuple[float, float], point: OperatingPoint | None
) -> list[str]:
    """Sentences about a result that should not be taken at face value; none for a sound one."""
    said = []
    small = [f"{size:,} {name}" for name, size in sizes.items() if size < TINY]
    if small:
        said.append(
            f"Only {' and '.join(small)}: the AUROC may lie anywhere from {100 * interval[0]:.1f} to "
            f"{100 * interval[1]:.1f} (95% interval). Bring at least {TINY} of each."
        )
    if auroc < 0.5:
        said.append(
            f"AUROC {100 * auroc:.1f} is below 50, worse than guessing: OOD points score lower than iD points. Larger must "
            "mean stranger; if your scores mean confidence, bring them with a minus sign."
        )
    if point is not None and point.id_flagged == point.id_points:
        said.append(
            f"All {point.id_points:,} iD points are flagged at epsilon = {point.epsilon:g}: the calibration scores and the test "
            "scores do not come from the same detector or preprocessing. Make both the same way."
        )
    return said
