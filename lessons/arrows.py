"""iDECODe in a world small enough to check by hand: arrows, turns and a clock.

A datapoint x is an arrow; in-distribution arrows point up, give or take a *lean* of a few degrees. A transform g turns
the arrow by an angle. The model M is a clock reader who has only ever seen upright arrows being turned: M(g(x)) is
the full hour nearest to where the arrow now points, read as the angle it was turned by. On iD arrows that is nearly
right, on others it is not: the error |M(g(x)) - g| is the base NCM, as in the paper's auxiliary task (Eq. 2).
All angles are degrees, clockwise, to one decimal, so that every number on the screen is exact.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from idecode_core import conformal
from idecode_core.conformal import FloatArray
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge

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


@dataclass(frozen=True, eq=False)
class Friends:
    """The calibration set: k iD arrows, each with its own turns."""

    leans: FloatArray  # (k,)
    turns: FloatArray  # (k, n_max)

    @property
    def calibration(self) -> Calibration:
        """Their score vectors V(x_j), (k, n_max)."""
        return Calibration(base_scores(self.leans, self.turns))


def draw_friends(k: int = 19, n_max: int = 20, *, generator: np.random.Generator) -> Friends:
    """k = 19 makes every p-value a multiple of 1/20."""
    leans = draw_leans(k, generator=generator)
    return Friends(leans, draw_turns(k, n_max, generator=generator))


@dataclass(frozen=True, eq=False)
class Working:
    """Algorithm 1 with all intermediate results, as one would write them on the blackboard."""

    g: FloatArray  # (n,) the turns drawn for the newcomer
    gx: FloatArray  # (n,) where it points after each
    readings: FloatArray  # (n,) M(g(x))
    score_vector: FloatArray  # (n,) V(x)
    score: float  # F(V(x))
    calibration_scores: FloatArray  # (k,) F(V(x_j))
    rank: int  # friends with a score at least as large
    p_value: float


def algorithm_1(friends: Friends, lean: float, n: int, *, generator: np.random.Generator) -> Working:
    """Algorithm 1 for a newcomer with this lean. The draws for a smaller n are the first of those for a larger one.

    >>> friends = draw_friends(generator=np.random.default_rng(0))
    >>> algorithm_1(friends, lean=60.0, n=5, generator=np.random.default_rng(0)).p_value
    0.05
    """
    calibration = friends.calibration
    g = draw_turns(1, calibration.n_max, generator=generator)[:, :n]  # (1, n)
    v = base_scores([lean], g)  # (1, n)
    verdict = judge(calibration, v, aggregate=total)[0]
    return Working(
        g=g[0],
        gx=directions([lean], g)[0],
        readings=read_hour(directions([lean], g)[0]),
        score_vector=v[0],
        score=verdict.score,
        calibration_scores=calibration.scores(n, total),  # (k,)
        rank=verdict.rank,
        p_value=verdict.p_value,
    )


def shuffled_p_values(k: int, repeats: int, *, generator: np.random.Generator) -> FloatArray:
    """The game behind the guarantee: k + 1 arrows from one hat, the last is the newcomer. p-values (repeats,)."""
    lean = np.abs(draw_leans(repeats * (k + 1), generator=generator)).reshape(repeats, k + 1)
    return np.array([conformal.p_values(round_[:-1], round_[-1:])[0] for round_ in lean])
