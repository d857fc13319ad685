"""A toy world with every part of iDECODe in it, small enough to run hundreds of times per second.

A point is x ~ N(0, I). A transform g = (t, theta) maps it to g(x) = t x + theta v: a change of contrast t and a move by
theta along a fixed direction v. The model is a linear regression that has learned to read theta off g(x). The base
NCM is its parameter error, (theta_hat - theta)^2, so a score vector mixes an effect of the point (how well the
model reads around it) and an effect of the draw (how hard that transform is).
OOD points are x ~ N(0, s^2 I) with s > 1.
"""

from dataclasses import dataclass

import numpy as np

from idecode_core.conformal import FloatArray

DIMENSIONS = 30
OOD_SCALE = 3.0
DIRECTION = np.full(DIMENSIONS, 2.0 / np.sqrt(DIMENSIONS))  # v, of length 2


@dataclass(frozen=True, eq=False)
class Draws:
    """Parameters of g for each point and draw, both (points, n); (1, n) when all points share them."""

    t: FloatArray
    theta: FloatArray


def sample_points(count: int, *, generator: np.random.Generator, scale: float = 1.0) -> FloatArray:
    """x, shape (count, DIMENSIONS). scale = 1 is the training distribution."""
    return scale * generator.normal(size=(count, DIMENSIONS))


def sample_draws(count: int, n: int, *, generator: np.random.Generator) -> Draws:
    """One g for each point and draw: t log-normal around 1, theta standard normal."""
    return Draws(np.exp(0.7 * generator.normal(size=(count, n))), generator.normal(size=(count, n)))


def train(x: FloatArray, *, generator: np.random.Generator) -> FloatArray:
    """M: the least-squares weights w with w . g(x) near theta, from one draw per point. Shape (DIMENSIONS,)."""
    draws = sample_draws(len(x), 1, generator=generator)
    gx = draws.t * x + draws.theta * DIRECTION  # (points, DIMENSIONS)
    # The tiny ridge keeps the equations solvable when there are fewer points than dimensions.
    weights = np.linalg.solve(gx.T @ gx + 1e-6 * np.eye(DIMENSIONS), gx.T @ draws.theta[:, 0])
    return np.asarray(weights, dtype=np.float64)


def score_vectors(weights: FloatArray, x: FloatArray, draws: Draws) -> FloatArray:
    """V: (theta_hat - theta)^2 for each point and draw, shape (points, n)."""
    # w . g(x) = t (w . x) + theta (w . v): the model is linear, so g(x) itself is not needed.
    theta_hat = draws.t * (x @ weights)[:, None] + draws.theta * (DIRECTION @ weights)
    squared_error: FloatArray = (theta_hat - draws.theta) ** 2
    return squared_error
