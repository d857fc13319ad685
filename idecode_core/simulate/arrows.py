"""iDECODe in a world small enough to check by hand: arrows, turns and a clock.

A datapoint x is an arrow; in-distribution arrows point up, give or take a *lean* of a few degrees. A transform g turns
the arrow by an angle. The model M is a clock reader who has only ever seen upright arrows being turned: M(g(x)) is
the full hour nearest to where the arrow now points, read as the angle it was turned by. On iD arrows that is nearly
right, on others it is not: the error |M(g(x)) - g| is the base NCM, as in the paper's auxiliary task (Eq. 2).
All angles are degrees, clockwise, to one decimal, so that every number on the screen is exact.
"""

import numpy as np
from numpy.typing import ArrayLike

from idecode_core import conformal
from idecode_core.calibration import Calibration
from idecode_core.conformal import FloatArray

HOUR = 30.0
"""What M can tell apart: twelve hours of 30 degrees."""


def draw_leans(count: int, *, generator: np.random.Generator) -> FloatArray:
    """iD arrows: leans from a bell curve around 0 with standard deviation 8 degrees. Shape (count,)."""
    return np.round(generator.normal(0.0, 8.0, count), 1)


def draw_turns(count: int, n: int, *, generator: np.random.Generator) -> FloatArray:
    """Q_G: n turns for each of `count` arrows, uniform on 0.0, 0.1, ..., 359.9. Shape (count, n)."""
    return generator.integers(0, 3600, (count, n)) / 10


def directions(leans: ArrayLike, turns: ArrayLike) -> FloatArray:
    """g(x): where arrows with these leans (count,) point after these turns (count, n). In [0, 360)."""
    x = np.asarray(leans, dtype=np.float64)[:, np.newaxis]  # (count, 1)
    return np.round((x + np.asarray(turns, dtype=np.float64)) % 360, 1) % 360  # (count, n)


def read_hour(direction: ArrayLike) -> FloatArray:
    """M: the nearest full hour, in degrees; half past counts as the next hour.

    >>> read_hour([44.9, 45.0, 350.0])
    array([30., 60.,  0.])
    """
    return np.asarray(HOUR * np.floor(np.asarray(direction) / HOUR + 0.5) % 360, dtype=np.float64)


def base_scores(leans: ArrayLike, turns: ArrayLike) -> FloatArray:
    """V: the base NCM |M(g(x)) - g|, the short way round the clock, for each arrow and turn. Shape (count, n).

    An arrow that leans by 8 is turned by 47: it points to 55, M reads two o'clock (60), and is 13 degrees off.

    >>> base_scores([8.0], [[47.0]])
    array([[13.]])
    """
    off = read_hour(directions(leans, turns)) - np.asarray(turns, dtype=np.float64)
    scores: FloatArray = np.abs((off + 180) % 360 - 180).round(1)
    return scores


def total(score_vectors: FloatArray) -> FloatArray:
    """F, the sum (batch, n) -> (batch,), rounded to the decimal it has, so that sums equal on paper are equal here.

    >>> total(np.array([[0.1, 0.2], [0.3, 0.0]]))
    array([0.3, 0.3])
    """
    scores: FloatArray = np.round(score_vectors.sum(axis=1), 1)
    return scores


def draw_calibration(k: int, n_max: int, *, generator: np.random.Generator) -> Calibration:
    """Calibrate with k fresh iD arrows, each with its own n_max turns."""
    leans = draw_leans(k, generator=generator)
    return Calibration(base_scores(leans, draw_turns(k, n_max, generator=generator)))


def redrawn_p_values(
    calibration: Calibration, lean: float, n: int, repeats: int, *, generator: np.random.Generator
) -> FloatArray:
    """The p-value of one arrow under `repeats` fresh draws of n turns: how much luck is left in it. (repeats,)."""
    turns = draw_turns(repeats, n, generator=generator)
    return calibration.p_values(base_scores(np.full(repeats, lean), turns), total)


def shuffled_p_values(k: int, repeats: int, *, generator: np.random.Generator) -> FloatArray:
    """The game behind the guarantee: k + 1 leans from one hat, the last is the newcomer. p-values (repeats,)."""
    p = np.empty(repeats)
    for repeat in range(repeats):
        strangeness = np.abs(draw_leans(k + 1, generator=generator))
        p[repeat] = conformal.p_values(strangeness[:-1], strangeness[-1:])[0]
    return p
