"""Known outliers help: some examples of what does not belong say where to look for more, and the bound is kept.

Liang, Sesia & Sun (2024), "Integrative conformal p-values for out-of-distribution testing with labelled outliers" (arXiv 2208.11111).
Promised: P(P < epsilon) <= epsilon for a point that belongs, whatever the outliers are. Not promised: a gain; a point that is strange in
another way than the known outliers is found less often than without them.
"""

import numpy as np
from numpy.typing import ArrayLike

from idecode_core.conformal.ranking import FloatArray, IntArray, checked_scores, p_values
from idecode_core.errors import InputError, ScoreError


def integrative_p_values(calibration: ArrayLike, outliers: ArrayLike, test: ArrayLike) -> FloatArray:
    """p-values (batch,) of test points from several scores each, larger is stranger: (k, d), (known outliers, d), (batch, d).

    Each of the k + 1 points, the new one among them, has u0, its p-value among these points, and u1, its p-value among the outliers.
    P is the rank of the new point's u0 / u1, small first; where two are equal, the smaller u0 is first. Nothing tells the new point
    from the others, so without ties P is uniform on its k + 1 values.

    >>> generator = np.random.default_rng(0)
    >>> known, strange = generator.normal(size=(200, 2)), generator.normal((0.0, 6.0), size=(10, 2))
    >>> integrative_p_values(known, strange, [[0.0, 6.0]]).round(3)
    array([0.005])
    """
    known, strange, asked = _checked(calibration, outliers, test)
    return np.array([_p_value(known, strange, point) for point in asked])


def _checked(
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


def _p_value(known: FloatArray, outliers: FloatArray, point: FloatArray) -> float:
    points = np.concatenate([known, point[None]])
    # In rising order, so that floats too treat the new point as one of many.
    spread = np.maximum(points[np.lexsort(points.T)].std(axis=0), 1e-12)
    inside, outside = points / spread, outliers / spread
    u0, u1 = _strangeness_ranks(inside, outside), _outlier_ranks(inside, outside)
    ratio = u0 / u1  # equal fractions are equal floats
    first = (ratio < ratio[-1]) | ((ratio == ratio[-1]) & (u0 <= u0[-1]))
    return float(np.count_nonzero(first) / len(points))


def _strangeness_ranks(inside: FloatArray, outside: FloatArray) -> IntArray:
    """(k + 1) u0: how many of the points are at least as strange, by the column, or the sum of all, that tells the outliers best
    (the largest AUROC)."""
    points, others = (
        np.column_stack([side, side.sum(axis=1)]) for side in (inside, outside)
    )  # (k + 1, d + 1)
    in_order = np.sort(points, axis=0)
    beaten = [
        sum(np.searchsorted(in_order[:, i], others[:, i], side=side).sum() for side in ("left", "right"))
        for i in range(points.shape[1])
    ]
    best = int(np.argmax(beaten))
    return np.asarray(len(points) - np.searchsorted(in_order[:, best], points[:, best], side="left"))


def _outlier_ranks(inside: FloatArray, outside: FloatArray) -> IntArray:
    """(outliers + 1) u1: one more than the outliers that are at least as far from the mean of the others as a point is from the mean
    of all."""
    count = len(outside)
    others = (outside.sum(axis=0) - outside) / (count - 1) if count > 1 else outside
    far = np.sort(((outside - others) ** 2).sum(axis=1))
    distance = ((inside - outside.mean(axis=0)) ** 2).sum(axis=1)
    return np.asarray(1 + count - np.searchsorted(far, distance, side="left"))


def gain(calibration: ArrayLike, outliers: ArrayLike, epsilon: float) -> tuple[float, float]:
    """Shares of the second half of the outliers that are flagged with the help of the first half, and by a plain sum of
    scores of spread 1; NaN where there is only one. Of ten outliers that is five: a hint, not a measurement."""
    known, strange, _ = _checked(calibration, outliers, outliers)
    if len(strange) < 2:
        return float("nan"), float("nan")
    learned, rest = strange[: len(strange) // 2], strange[len(strange) // 2 :]
    with_them = integrative_p_values(known, learned, rest) < epsilon
    spread = np.maximum(known.std(axis=0), 1e-12)
    plain = p_values((known / spread).sum(axis=1), (rest / spread).sum(axis=1)) < epsilon
    return float(with_them.mean()), float(plain.mean())
