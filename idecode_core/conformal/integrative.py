"""Known outliers help: some examples of what does not belong choose how several scores are weighted, and the bound is kept.

After Liang, Sesia & Sun (2024), "Integrative conformal p-values for out-of-distribution testing with labelled outliers": whatever is
learned treats the calibration points and the new point alike, so their ranks stay exchangeable. Here that is the direction of
Fisher's discriminant between the outliers and all points that may belong, the new one among them; weights are never negative.
Promised: P(P < epsilon) <= epsilon for a point that belongs, whatever the outliers are. Not promised: a gain against kinds that are
not like the known ones; where the outliers are few or unlike, a plain sum of the scores may do better.
"""

import numpy as np
from numpy.typing import ArrayLike

from idecode_core.conformal.ranking import FloatArray, checked_scores, p_values
from idecode_core.errors import InputError, ScoreError

SHRINKAGE = 0.1
"""Share of the diagonal in the covariance, so that two scores that say the same do not cancel each other."""


def integrative_p_values(calibration: ArrayLike, outliers: ArrayLike, test: ArrayLike) -> FloatArray:
    """p-values (batch,) of test points from several scores each, larger is stranger: (k, d), (known outliers, d), (batch, d).

    >>> generator = np.random.default_rng(0)
    >>> known, strange = generator.normal(size=(200, 2)), generator.normal((0.0, 6.0), size=(10, 2))
    >>> integrative_p_values(known, strange, [[0.0, 6.0]]).round(3)
    array([0.005])
    """
    known, strange, asked = checked_sides(calibration, outliers, test)
    return np.array([_p_value(known, strange, point) for point in asked])


def checked_sides(
    calibration: ArrayLike, outliers: ArrayLike, test: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The three sides, of one width; InputError where an outlier is a calibration point too."""
    known = checked_scores(calibration, "calibration", ndim=2)
    strange = checked_scores(outliers, "outliers", ndim=2)
    asked = checked_scores(test, "test", ndim=2)
    if not known.shape[1] == strange.shape[1] == asked.shape[1]:
        raise ScoreError(
            f"All points need the same scores: calibration has {known.shape[1]} for each, outliers {strange.shape[1]} and test "
            f"{asked.shape[1]}."
        )
    both = len({row.tobytes() for row in known} & {row.tobytes() for row in strange})
    if both:
        raise InputError(
            f"{both} of the known outliers are calibration points too: expected points that do not belong. Take them out of one."
        )
    return known, strange, asked


def outlier_direction(inside: FloatArray, outliers: FloatArray) -> FloatArray:
    """Weights (d,) of the scores: Fisher's discriminant with some of the diagonal, never negative; equal where none is positive."""
    spread = np.maximum(inside.std(axis=0), 1e-12)
    x, o = inside / spread, outliers / spread
    covariance = np.atleast_2d(np.cov(x, rowvar=False)) if len(x) > 1 else np.eye(x.shape[1])
    mixed = (1 - SHRINKAGE) * covariance + SHRINKAGE * np.eye(x.shape[1])
    weights = np.maximum(np.linalg.solve(mixed, o.mean(axis=0) - x.mean(axis=0)), 0.0)
    return np.asarray((weights if weights.any() else np.ones(x.shape[1])) / spread, dtype=np.float64)


def _p_value(known: FloatArray, outliers: FloatArray, point: FloatArray) -> float:
    # In rising order, so that floats too treat the new point as one of many.
    inside = np.concatenate([known, point[None]])
    inside = inside[np.lexsort(inside.T)]
    weights = outlier_direction(inside, outliers)
    return float(p_values((known * weights).sum(axis=1), [float((point * weights).sum())])[0])


def gain(calibration: ArrayLike, outliers: ArrayLike, epsilon: float) -> tuple[float, float]:
    """Shares of the second half of the outliers that are flagged by weights learned from the first half, and by a plain sum of
    scores of spread 1. Of ten outliers that is five: a hint, not a measurement."""
    known, strange, _ = checked_sides(calibration, outliers, outliers)
    half = max(len(strange) // 2, 1)
    learned, rest = strange[:half], strange[half:] if len(strange) > 1 else strange
    with_them = integrative_p_values(known, learned, rest) < epsilon
    spread = np.maximum(known.std(axis=0), 1e-12)
    plain = p_values((known / spread).sum(axis=1), (rest / spread).sum(axis=1)) < epsilon
    return float(with_them.mean()), float(plain.mean())
