"""Where is it strange? How far the score falls when parts of a picture are hidden (Zeiler & Fergus 2014).

A window of a quarter of the side is moved over the picture: first side by side, then in half and in quarter steps. Windows
are all of one size, so that their effects can be compared and averaged. A hidden part shows the picture's own strong blur:
a flat patch would be strange by itself. All copies are scored with the draws of the whole picture.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from idecode_core.conformal.calibration import Aggregate, aggregate_scores
from idecode_core.draws import Prepared
from idecode_core.image.read import Pixels
from idecode_core.scorer import Scorer

Floats = NDArray[np.float64]
SHARE = 4  # a window is 1/SHARE of the side
STEPS = (1, 2)  # windows per window's width: side by side, then half a width apart
COPIES = 16  # scored together, between two reports of progress


@dataclass(frozen=True)
class Window:
    """A square part of a picture, in shares of its side."""

    top: float
    left: float
    side: float

    def slices(self, size: int) -> tuple[slice, slice]:
        """Its pixels in a picture of size x size."""
        edges = [
            round(edge * size) for edge in (self.top, self.top + self.side, self.left, self.left + self.side)
        ]
        return slice(edges[0], edges[1]), slice(edges[2], edges[3])


@dataclass(frozen=True, eq=False)
class OcclusionMap:
    """How far hiding each part lowers the score; negative where it raises it."""

    drops: Floats  # (cells, cells): the mean over the windows that cover a cell
    whole: float
    """The score of the picture with nothing hidden."""
    windows: int


def windows(step: int) -> list[Window]:
    """All windows of 1/SHARE of the side, 1/(SHARE * step) apart, row by row.

    >>> len(windows(1)), len(windows(2)), windows(1)[6]
    (16, 49, Window(top=0.25, left=0.5, side=0.25))
    """
    places = [i / (SHARE * step) for i in range(step * (SHARE - 1) + 1)]
    return [Window(top, left, 1 / SHARE) for top in places for left in places]


def occlusion_maps(
    score: Callable[[Sequence[Window]], Floats],
    *,
    steps: Sequence[int] = STEPS,
    progress: Callable[[float], None] | None = None,
) -> Iterator[OcclusionMap]:
    """One map per step, the coarse one first. `score` gives F(V) of the picture with each window hidden; a window without
    side hides nothing. No window is scored twice."""
    total = len({window for step in steps for window in windows(step)})
    whole = float(score([Window(0.0, 0.0, 0.0)])[0])
    known: dict[Window, float] = {}
    for step in steps:
        new = [window for window in windows(step) if window not in known]
        for first in range(0, len(new), COPIES):
            part = new[first : first + COPIES]
            known.update(zip(part, (whole - score(part)).tolist(), strict=True))
            if progress is not None:
                progress(len(known) / total)
        yield OcclusionMap(averaged(known, SHARE * step), whole, len(known))


def averaged(drops: dict[Window, float], cells: int) -> Floats:
    """The mean drop of the windows over each cell of a grid: (cells, cells)."""
    total, count = np.zeros((cells, cells)), np.zeros((cells, cells))
    for window, drop in drops.items():
        place = window.slices(cells)
        total[place] += drop
        count[place] += 1
    return total / np.maximum(count, 1)


def hide(pixels: Pixels, window: Window) -> Pixels:
    """A copy of square pixels (size, size, 3) whose window shows their strong blur."""
    hidden = pixels.copy()
    place = window.slices(len(pixels))
    hidden[place] = blurred(pixels)[place]
    return hidden


def blurred(pixels: Pixels) -> Pixels:
    radius = len(pixels) / SHARE
    return np.asarray(Image.fromarray(np.ascontiguousarray(pixels)).filter(ImageFilter.GaussianBlur(radius)))


def hidden_copy(point: Prepared, window: Window) -> Prepared:
    """A prepared picture with a window hidden, and the draws of the whole one; of each member of a merged detector."""
    if isinstance(point.x, tuple):
        return replace(point, x=tuple(hidden_copy(part, window) for part in point.x))
    return replace(point, x=hide(point.x, window))


def picture_occlusion(
    scorer: Scorer,
    point: Prepared,
    *,
    n: int,
    aggregate: str | Aggregate = "sum",
    steps: Sequence[int] = STEPS,
    progress: Callable[[float], None] | None = None,
) -> Iterator[OcclusionMap]:
    """The maps of one prepared picture under n draws."""

    def score(parts: Sequence[Window]) -> Floats:
        copies = [hidden_copy(point, window) for window in parts]
        return aggregate_scores(scorer.score(copies, n=n, seed=point.seed).score_vectors, aggregate)

    return occlusion_maps(score, steps=steps, progress=progress)
