"""The calibration set's score vectors, and F, which turns a score vector into one score.

V is stored, not F(V): n, F and epsilon can change without running the model again.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from idecode_core import conformal
from idecode_core.conformal import FloatArray, checked_scores
from idecode_core.errors import ScoreError, SettingError

Aggregate = Callable[[FloatArray], FloatArray]
"""F of Eq. 4: score vectors (batch, n) -> scores (batch,). Each row's score may depend on that row only."""

LOG_FLOOR = 1e-12
"""`sum_of_logs` counts smaller scores as this one, so that an exact zero stays finite and cannot outweigh
every other draw. The floor is the same for calibration and test points, so the guarantee is untouched."""
USUAL_N = 5
"""Draws per point where nobody asked for another number."""


def _sum_of_logs(score_vectors: FloatArray) -> FloatArray:
    smallest = float(score_vectors.min())
    if smallest < 0:
        raise ScoreError(
            f"sum_of_logs needs scores that are not negative, got {smallest:g}. Use the aggregate 'sum' instead."
        )
    scores: FloatArray = np.log(np.maximum(score_vectors, LOG_FLOOR)).sum(axis=1)
    return scores


@dataclass(frozen=True)
class NamedAggregate:
    """An F that comes with this program, and its words for readers."""

    function: Aggregate
    title: str
    means: str

    def __call__(self, score_vectors: FloatArray) -> FloatArray:
        return self.function(score_vectors)


AGGREGATES: dict[str, NamedAggregate] = {
    "sum": NamedAggregate(lambda v: np.sum(v, axis=1), "sum", "all draws count alike, as in the paper"),
    "mean": NamedAggregate(
        lambda v: np.mean(v, axis=1), "mean", "ranks as the sum does, on the scale of one draw"
    ),
    "max": NamedAggregate(lambda v: np.max(v, axis=1), "maximum", "only the strangest draw counts"),
    "sum_of_logs": NamedAggregate(
        _sum_of_logs, "sum of logarithms", "ratios count, so one huge score cannot outweigh all others"
    ),
}
"""How V becomes one number: the choices of F by name."""


def aggregate_scores(score_vectors: ArrayLike, aggregate: str | Aggregate = "sum") -> FloatArray:
    """F(V): one score for each row of `score_vectors` (batch, n), by the name of an aggregate or any callable.

    >>> aggregate_scores([[1.0, 2.0], [3.0, 0.5]], "max")
    array([2., 3.])
    """
    # One memory layout for all: NumPy's order of summation, and with it the last bit, depends on the layout,
    # and equal points must have equal scores.
    vectors = np.ascontiguousarray(checked_scores(score_vectors, "score_vectors", ndim=2))  # (batch, n)
    if isinstance(aggregate, str):
        if aggregate not in AGGREGATES:
            raise SettingError(
                f"aggregate must be one of {', '.join(AGGREGATES)} or a function (batch, n) -> (batch,), "
                f"got {aggregate!r}."
            )
        aggregate = AGGREGATES[aggregate]
    elif not callable(aggregate):
        raise SettingError(f"aggregate must be a name or a function, got {type(aggregate).__name__}.")
    scores = checked_scores(aggregate(vectors), "aggregated scores")  # (batch,)
    if scores.size != len(vectors):
        raise ScoreError(
            f"aggregate must return one score per point: expected shape {(len(vectors),)}, got {scores.shape}. "
            "Reduce over the last axis."
        )
    return scores


def chosen_n(n: int | None, n_max: int, name: str) -> int:
    """The n that was asked for; None is 5, or fewer where the detector has fewer: one without random draws has one.

    >>> chosen_n(None, 20, "mine"), chosen_n(None, 1, "mine"), chosen_n(7, 20, "mine")
    (5, 1, 7)
    """
    if n is None:
        return min(USUAL_N, n_max)
    if not 1 <= n <= n_max:
        raise SettingError(
            f"n must lie between 1 and {n_max}, the draws that {name} was calibrated with, got {n}. {_another_n(n, n_max)}"
        )
    return n


def _another_n(n: int, n_max: int) -> str:
    """What to do about an n that cannot be."""
    return (
        "Calibrate again with a larger n_max to use more draws."
        if n > n_max
        else "Give a whole number from 1 on."
    )


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Score vectors (k, n_max) of the k calibration points, drawn with `seed`. The array is a copy and read-only.

    >>> calibration = Calibration([[0.1, 0.2], [0.3, 0.1], [0.5, 0.9]])
    >>> calibration
    Calibration(k=3, n_max=2, seed=0)
    >>> calibration.scores(n=1)
    array([0.1, 0.3, 0.5])
    """

    score_vectors: FloatArray  # (k, n_max)
    seed: int = 0

    def __post_init__(self) -> None:
        copy = np.array(checked_scores(self.score_vectors, "calibration score_vectors", ndim=2), order="C")
        copy.setflags(write=False)
        object.__setattr__(self, "score_vectors", copy)

    def __repr__(self) -> str:
        return f"Calibration(k={self.k}, n_max={self.n_max}, seed={self.seed})"

    def rounded(self, dtype: DTypeLike) -> "Calibration":
        """The calibration in the precision of stored test scores, so that what was tied stays tied.

        >>> Calibration([[0.1]]).rounded(np.float32).score_vectors[0, 0] == np.float32(0.1)
        np.True_
        """
        return Calibration(self.score_vectors.astype(dtype), self.seed)

    @property
    def k(self) -> int:
        """The number of calibration points."""
        return int(self.score_vectors.shape[0])

    @property
    def n_max(self) -> int:
        """The number of transforms drawn for each calibration point."""
        return int(self.score_vectors.shape[1])

    @property
    def sha256(self) -> str:
        """Which calibration this is: the same scorer calibrated again gives other p-values."""
        return hashlib.sha256(self.score_vectors.tobytes()).hexdigest()

    def scores(self, n: int, aggregate: str | Aggregate = "sum") -> FloatArray:
        """F of the first n base scores of each calibration point: shape (k,)."""
        if not 1 <= n <= self.n_max:
            raise SettingError(
                f"n must lie between 1 and {self.n_max}, the number of draws this calibration holds, got {n}. "
                f"{_another_n(n, self.n_max)}"
            )
        return aggregate_scores(self.score_vectors[:, :n], aggregate)

    def threshold(self, n: int, epsilon: float, aggregate: str | Aggregate = "sum") -> float:
        """The score above which a point with n draws is flagged at epsilon; +inf when none can be."""
        return conformal.threshold(self.scores(n, aggregate), epsilon)
