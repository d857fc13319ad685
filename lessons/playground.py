"""The playground: calibration points on a line, an NCM to choose, and a p-value for every place on the line."""

import numpy as np
from numpy.typing import ArrayLike

from idecode_core import conformal
from idecode_core.conformal import FloatArray
from idecode_core.errors import SettingError

SHAPES = ("One bump", "Two bumps", "Long tail")
"""What `draw_points` can draw."""


def draw_points(shape: str, count: int, *, generator: np.random.Generator) -> FloatArray:
    """In-distribution points on a line from 0 to 10, for the playground. Shape (count,), two decimals."""
    if shape == "One bump":
        points = generator.normal(5.0, 1.0, count)
    elif shape == "Two bumps":
        points = generator.choice([2.0, 8.0], count) + generator.normal(0.0, 0.6, count)
    elif shape == "Long tail":
        points = 1.0 + generator.exponential(1.2, count)
    else:
        raise SettingError(f"shape must be one of {', '.join(SHAPES)}, got {shape!r}.")
    rounded: FloatArray = np.clip(points, 0.0, 10.0).round(2)
    return rounded


NCMS = ("The value itself", "Distance from the middle", "Distance to the nearest neighbours")
"""What `strangeness` can measure."""

NEIGHBOURS = 5
"""The nearest training points, over which their distance is averaged; one alone would be at the mercy of gaps."""


def strangeness(ncm: str, proper_training_set: ArrayLike, points: ArrayLike) -> FloatArray:
    """An NCM for points on a line: any of them is valid, none of them finds everything. Shape of `points`.

    >>> strangeness("Distance from the middle", [1.0, 4.0, 9.0], [10.0])
    array([6.])
    """
    training, x = conformal.checked_scores(proper_training_set, "proper_training_set"), np.asarray(points)
    if ncm == "The value itself":
        return np.asarray(x, dtype=np.float64)
    if ncm == "Distance from the middle":
        return np.asarray(np.round(np.abs(x - np.median(training)), 2), dtype=np.float64)
    if ncm == "Distance to the nearest neighbours":
        distances = np.sort(np.abs(x[..., np.newaxis] - training), axis=-1)  # (..., training points)
        nearest: FloatArray = distances[..., :NEIGHBOURS].mean(axis=-1).round(2)
        return nearest
    raise SettingError(f"ncm must be one of {', '.join(NCMS)}, got {ncm!r}.")


LARGEST = 1_000_000
"""Numbers beyond this cannot be told apart on one line with the playground's own."""


def read_points(text: str) -> FloatArray:
    """Numbers that someone typed, separated by commas, semicolons or spaces. Shape (count,).

    >>> read_points("1.5, 2; 3")
    array([1.5, 2. , 3. ])
    """
    words = text.replace(",", " ").replace(";", " ").split()
    if not 2 <= len(words) <= 1000:
        raise SettingError(f"Give between 2 and 1000 numbers, separated by commas; {len(words)} came.")
    try:
        points = np.array([float(word) for word in words])
    except ValueError as error:
        raise SettingError(
            f"The points must be numbers such as 1.5, 2, 3, but one is not ({error})."
        ) from error
    if np.abs(conformal.checked_scores(points, "The points")).max() > LARGEST:
        raise SettingError(f"The points must lie between -{LARGEST:,} and {LARGEST:,}. Use another unit.")
    return points
