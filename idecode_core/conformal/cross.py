"""With few points, each one both fits the model and calibrates it. For models that are cheap to fit.

Cross-conformal p-values: the points are put into folds; each point is scored by the model that is fitted without its fold, and a new
point by all these models. Vovk (2015), "Cross-conformal predictors"; Barber, Candes, Ramdas & Tibshirani (2021), "Predictive inference
with the jackknife+", Theorem 4 (CV+); with one point per fold these are the p-values of the jackknife+.
Promised: P(p < epsilon) is at most `cross_bound`, which is 2 epsilon with one point per fold and more with larger folds. Not promised:
epsilon itself, though the rate is often near it; and anything for folds or models that were chosen by a look at these scores.

Full conformal p-values (Vovk, Gammerman & Shafer 2005): the new point joins the others, and each of them all is scored by the rest. For
the distance from a near neighbour that is cheap. Promised: epsilon itself, with no factor. Not promised: anything for a fixed set of
points, as `conditional` has it (`delta`), for there is no calibration set that new points share.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from idecode_core.conformal import FloatArray, check_epsilon, checked_scores
from idecode_core.errors import ScoreError, SettingError

FitAndScore = Callable[[NDArray[np.floating], NDArray[np.floating]], ArrayLike]
"""(points to fit, points to score) -> scores, larger is stranger. It must not depend on the order of the points to fit."""


def cross_p_values(held_out: Sequence[ArrayLike], new: ArrayLike) -> FloatArray:
    """p = (1 + sum over folds of #{j in the fold: its score >= that of the new point, by the model without the fold}) / (n + 1).

    `held_out` has the scores of each fold's points; `new`, shape (folds, count), those of the new points by the same models.

    >>> cross_p_values([[1.0, 2.0], [3.0, 4.0]], [[1.5, 9.0], [3.5, 9.0]])
    array([0.6, 0.2])
    """
    folds = [checked_scores(scores, f"the scores of fold {i + 1}") for i, scores in enumerate(held_out)]
    asked = np.asarray(new, dtype=np.float64)
    if len(folds) < 2 or asked.ndim != 2 or len(asked) != len(folds):
        raise ScoreError(
            f"Cross-conformal p-values need at least two folds and, of each new point, a score by the model of each: got {len(folds)} "
            f"folds and new scores of shape {asked.shape}; expected ({max(len(folds), 2)}, count)."
        )
    above = np.zeros(asked.shape[1], dtype=np.int64)
    for known, scores in zip(folds, asked, strict=True):
        checked = checked_scores(scores, "new")
        above += known.size - np.searchsorted(np.sort(known), checked, side="left")
    count = sum(known.size for known in folds)
    p: FloatArray = (1 + above) / (count + 1)
    return p


def neighbour_p_values(known: ArrayLike, new: ArrayLike, k: int = 1) -> FloatArray:
    """Full conformal p-values of new points (count, d), each alone among the known ones (n, d). The score of a point is its distance
    from the k-th nearest of the others, the new one among them.

    >>> neighbour_p_values([[0.0], [1.0], [2.0]], [[9.0], [1.4]])
    array([0.25, 1.  ])
    """
    points, asked = checked_scores(known, "known", ndim=2), checked_scores(new, "new", ndim=2)
    if not 1 <= k < len(points) or points.shape[1] != asked.shape[1]:
        raise ScoreError(
            f"Expected more than {k} known points, with as many numbers each as the new ones: got {points.shape} and {asked.shape}."
        )
    apart = cdist(points, points)
    np.fill_diagonal(apart, np.inf)
    near = np.sort(apart, axis=1)[:, :k]  # (n, k): without the new point
    to_new = cdist(asked, points)  # (count, n)
    closer = near[:, -2] if k > 1 else np.zeros(len(points))
    scores = np.clip(to_new, closer, near[:, -1])  # the k-th smallest once the new point is there
    score_of_new = np.sort(to_new, axis=1)[:, k - 1 : k]
    p: FloatArray = (1 + np.count_nonzero(scores >= score_of_new, axis=1)) / (len(points) + 1)
    return p


def cross_bound(sizes: Sequence[int], epsilon: float) -> float:
    """What P(p < epsilon) is at most, for folds of these sizes: 2 epsilon + 2 (K-1) / (n+K), for a mean of K p-values is at most
    doubled (Vovk 2015; Gasparin & Ramdas 2025, arXiv 2503.01495, have it with a factor 1 - epsilon at the second term); for equal
    folds also 2 epsilon + (1 - K/n) / (K+1) (Barber et al. 2021, Theorem 4). The smaller one.

    >>> cross_bound([1] * 75, 0.05), round(cross_bound([5] * 15, 0.05), 3), cross_bound([40, 35], 0.05) < 0.13
    (0.1, 0.15, True)
    """
    check_epsilon(epsilon)
    if len(sizes) < 2 or min(sizes) < 1:
        raise SettingError(f"Expected at least two folds with a point or more in each, got {list(sizes)}.")
    folds, count = len(sizes), sum(sizes)
    more = 2 * (folds - 1) / (count + folds)
    if len(set(sizes)) == 1:
        more = min(more, (1 - folds / count) / (folds + 1))
    return min(2 * epsilon + more, 1.0)


def cross_scores(
    fit_and_score: FitAndScore,
    points: ArrayLike,
    new: ArrayLike,
    folds: int | None = None,
    *,
    generator: np.random.Generator,
) -> tuple[list[FloatArray], FloatArray]:
    """What `cross_p_values` takes, for a model of your own: it is fitted once per fold. Folds are drawn at random; one point each when
    left out, which has the best bound.

    >>> def far(fitted, asked): return abs(asked - fitted.mean(axis=0)).sum(axis=1)
    >>> held_out, new = cross_scores(far, [[0.0], [1.0], [2.0]], [[9.0]], generator=np.random.default_rng(0))
    >>> cross_p_values(held_out, new)
    array([0.25])
    """
    known, asked = np.asarray(points, dtype=np.float64), np.asarray(new, dtype=np.float64)
    count = len(known) if folds is None else folds
    if not 2 <= count <= len(known):
        raise SettingError(f"folds must lie between 2 and the number of points, {len(known)}; got {count}.")
    held_out, scored = [], []
    for fold in np.array_split(generator.permutation(len(known)), count):
        rest = np.delete(known, fold, axis=0)
        scores = checked_scores(fit_and_score(rest, np.concatenate([known[fold], asked])), "scores")
        if scores.size != len(fold) + len(asked):
            raise ScoreError(
                f"Expected a score for each of {len(fold) + len(asked)} points, got {scores.size}."
            )
        held_out.append(scores[: len(fold)])
        scored.append(scores[len(fold) :])
    return held_out, np.stack(scored)


def promise(sizes: Sequence[int], epsilon: float) -> str:
    """The looser bound, in the same sentence.

    >>> promise([1] * 75, 0.05)
    'Cross-conformal over 75 folds of 75 points: one that belongs is flagged with probability at most 0.1, not 0.05; the smallest p-value is 0.013.'
    """
    count = sum(sizes)
    return (
        f"Cross-conformal over {len(sizes):,} folds of {count:,} points: one that belongs is flagged with probability at most "
        f"{cross_bound(sizes, epsilon):.3g}, not {epsilon:g}; the smallest p-value is {1 / (count + 1):.2g}."
    )
