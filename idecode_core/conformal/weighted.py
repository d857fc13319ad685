"""The source has shifted: calibration points are weighted by how likely they are in the new source.

Promised: if new points that belong differ from calibration points only in how often each kind comes (covariate shift), and the
weights are the true ratios of the two densities up to a factor, P(P < epsilon) <= epsilon (Tibshirani, Barber, Candès & Ramdas 2019,
"Conformal prediction under covariate shift").
Not promised: anything for kinds that were never seen, and weights that are estimated are only as good as the classifier; fit it on
an unlabelled batch of the new source that is not the one to be judged, and look at the effective sample size.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from idecode_core.conformal.multiple import benjamini_hochberg
from idecode_core.conformal.observed import ObservedRate, observed_rate
from idecode_core.conformal.ranking import FloatArray, check_epsilon, checked_scores, p_values
from idecode_core.errors import ScoreError, SettingError

RIDGE = 1.0
"""Penalty on the classifier's slopes, which are on features of spread 1."""

COVERED = 0.5
"""The mean over calibration points of the density ratio, which is 1 where they cover the new source: below this it is refused."""

FEWEST = 40
"""Inputs of a new source that weights are learned from and tried on, half each."""

SHIFT_PROMISE = "Inputs that belong and come as this batch came are flagged with probability at most epsilon, if the weights are right."
SHIFT_NOT_PROMISED = (
    "It is not promised for weights that are only close, as learned ones are, nor for kinds that calibration never had; and what does "
    "not belong in the batch is learned as if it did, and caught less."
)


def weighted_p_values(
    calibration_scores: ArrayLike,
    calibration_weights: ArrayLike,
    test_scores: ArrayLike,
    test_weights: ArrayLike,
) -> FloatArray:
    """(sum of w_j over s_j >= s, plus w) / (sum of w_j, plus w), for each test point of score s and weight w.

    Equal weights give Eq. 5.

    >>> weighted_p_values([1.0, 2.0, 3.0], [1.0, 1.0, 2.0], [2.5], [1.0])
    array([0.6])
    """
    calibration = checked_scores(calibration_scores, "calibration_scores")
    test = checked_scores(test_scores, "test_scores")
    known = _checked_weights(calibration_weights, calibration, "calibration_weights")
    weights = _checked_weights(test_weights, test, "test_weights")
    order = np.argsort(calibration)
    above = np.append(np.cumsum(known[order][::-1])[::-1], 0.0)  # weight at this place and beyond
    beyond = above[np.searchsorted(calibration[order], test, side="left")]
    p: FloatArray = np.minimum((beyond + weights) / (above[0] + weights), 1.0)
    return p


def weighted_selection(
    calibration_scores: ArrayLike,
    calibration_weights: ArrayLike,
    test_scores: ArrayLike,
    test_weights: ArrayLike,
    q: float,
) -> NDArray[np.bool_]:
    """Weighted conformal selection: which test points to flag so that the false discovery rate is at most q under the shift.

    Benjamini-Hochberg on weighted p-values has no such proof. For each point j the p-values of the others are computed as if j
    were a calibration point; R_j is what Benjamini-Hochberg then flags. Jin & Candès (2023), "Model-free selective inference
    under covariate shift via weighted conformal p-values", Algorithm 1 with deterministic pruning.

    >>> weighted_selection(range(100), np.ones(100), [200.0, 50.0], [1.0, 1.0], q=0.2)
    array([ True, False])
    """
    p = weighted_p_values(calibration_scores, calibration_weights, test_scores, test_weights)
    calibration, known = np.asarray(calibration_scores, float), np.asarray(calibration_weights, float)
    test, weights = np.asarray(test_scores, float), np.asarray(test_weights, float)
    order = np.argsort(calibration)
    above = np.append(np.cumsum(known[order][::-1])[::-1], 0.0)
    beyond = above[np.searchsorted(calibration[order], test, side="left")]  # (m,)
    sizes = np.empty(test.size, dtype=np.int64)
    for j in range(test.size):
        others = (beyond + weights[j] * (test[j] >= test)) / (above[0] + weights[j])
        others[j] = 0.0
        # p-values of 0 are always flagged; the smallest float stands for them.
        sizes[j] = np.count_nonzero(benjamini_hochberg(np.clip(others, np.finfo(float).tiny, 1.0), q))
    first = p * test.size <= q * sizes
    rising = np.sort(sizes[first])
    fits = np.flatnonzero(np.arange(1, rising.size + 1) >= rising)
    most = int(rising[fits[-1]]) if fits.size else 0
    return np.asarray(first & (sizes <= most), dtype=np.bool_)


def effective_sample_size(weights: ArrayLike) -> float:
    """(sum w)^2 / sum w^2: how many equally weighted points would say as much.

    >>> effective_sample_size([1.0, 1.0, 1.0]), effective_sample_size([5.0, 0.0, 0.0])
    (3.0, 1.0)
    """
    values = checked_scores(weights, "weights")
    w = _checked_weights(values, values, "weights")
    return float(w.sum() ** 2 / np.square(w).sum())


def check_effective(weights: ArrayLike, epsilon: float) -> float:
    """The effective sample size; a SettingError where it is too small for anything to be flagged at epsilon."""
    check_epsilon(epsilon)
    size = effective_sample_size(weights)
    if size + 1 <= 1 / epsilon:
        raise SettingError(
            f"The new source is too far from the calibration points: {np.size(weights):,} of them count as {size:.1f}, and epsilon = "
            f"{epsilon:g} needs more than {1 / epsilon - 1:.3g}. Calibrate on points of the new source, or use a larger epsilon."
        )
    return size


def density_ratio(
    calibration_features: ArrayLike, new_features: ArrayLike, *others: ArrayLike, ridge: float = RIDGE
) -> tuple[FloatArray, ...]:
    """Weights of the calibration points, and of any other points, from a logistic classifier between calibration features and an
    unlabelled batch of the new source, both (points, features): odds times k / batch. Mean weight of the calibration points is 1.

    >>> generator = np.random.default_rng(0)
    >>> weights, = density_ratio(generator.normal(size=(500, 1)), generator.normal(1.0, size=(500, 1)))
    >>> bool(abs(weights.mean() - 1) < 1e-9)
    True
    """
    old = checked_scores(calibration_features, "calibration_features", ndim=2)
    new = checked_scores(new_features, "new_features", ndim=2)
    asked = [checked_scores(features, "features", ndim=2) for features in others]
    for features in (new, *asked):
        if features.shape[1] != old.shape[1]:
            raise ScoreError(
                f"Features must be the same for all points: expected {old.shape[1]} columns, got {features.shape[1]}."
            )
    both = np.concatenate([old, new])
    middle, spread = both.mean(axis=0), np.maximum(both.std(axis=0), 1e-12)
    x, is_new = (both - middle) / spread, np.arange(len(both)) >= len(old)

    def loss(slopes: FloatArray) -> tuple[float, FloatArray]:
        z = x @ slopes[1:] + slopes[0]
        value = np.logaddexp(0, z).sum() - z[is_new].sum() + ridge / 2 * slopes[1:] @ slopes[1:]
        wrong = special.expit(z) - is_new
        return float(value), np.concatenate([[wrong.sum()], x.T @ wrong + ridge * slopes[1:]])

    slopes = optimize.minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B").x
    logits = [((features - middle) / spread) @ slopes[1:] for features in (old, *asked)]
    scale = special.logsumexp(logits[0]) - np.log(len(old))
    covered = np.exp(min(slopes[0] + scale + np.log(len(old) / len(new)), 0.0))  # 1 for the true ratio
    if covered < COVERED:
        raise SettingError(
            f"The new source is too far from the calibration points: they account for {covered:.0%} of it, and weights cannot make up "
            "for kinds that were never seen. Calibrate on points of the new source."
        )
    return tuple(np.exp(np.clip(logit - scale, -700, 700)) for logit in logits)


@dataclass(frozen=True, eq=False)
class UnderShift:
    """Calibration points weighted for a new source, what that brings there, and what it costs elsewhere."""

    weights: FloatArray  # (k,)
    rates: tuple[tuple[ObservedRate, ObservedRate], ...]
    """Flagged without and with the weights: of the half of the batch that taught nothing, then of each further set."""

    @property
    def effective(self) -> float:
        return effective_sample_size(self.weights)


def under_shift(
    calibration_scores: ArrayLike,
    batch_scores: ArrayLike,
    *others: ArrayLike,
    epsilon: float,
    generator: np.random.Generator,
) -> UnderShift:
    """What weights learned from an unlabelled batch of a new source do, where nothing but scores is known of calibration points.

    The feature is a score's place among the calibration points: p-values see nothing else of a point, so the ratio of the two laws
    of scores is all they need, and no finer ratio leaves a larger effective sample size. A random half of the batch is learned from.
    A SettingError where the batch or the effective sample size is too small.
    """
    known = checked_scores(calibration_scores, "calibration_scores")
    batch = checked_scores(batch_scores, "batch_scores")
    if batch.size < FEWEST:
        raise SettingError(
            f"Weights are learned from one half of the batch and tried on the other: expected at least {FEWEST} inputs, got "
            f"{batch.size:,}. Bring more of the new source."
        )
    order = generator.permutation(batch.size)
    learned, tried = batch[order[: batch.size // 2]], batch[order[batch.size // 2 :]]
    sets = [tried, *(checked_scores(scores, "scores") for scores in others)]
    weights, *set_weights = density_ratio(*(places(known, scores) for scores in (known, learned, *sets)))
    check_effective(weights, epsilon)
    rates = tuple(
        (
            observed_rate(p_values(known, scores), epsilon),
            observed_rate(weighted_p_values(known, weights, scores, own_weights), epsilon),
        )
        for scores, own_weights in zip(sets, set_weights, strict=True)
    )
    return UnderShift(weights, rates)


def places(known: FloatArray, scores: FloatArray) -> FloatArray:
    """log u and log (1 - u) of each score's place u among the known ones: (points, 2). Linear in them, the classifier takes the
    places of the new source to follow a Beta law, which is flat where nothing has shifted."""
    in_order = np.sort(known)
    below, up_to = (np.searchsorted(in_order, scores, side) for side in ("left", "right"))
    u = ((below + up_to) / 2 + 0.5) / (known.size + 1)
    return np.log(np.stack([u, 1 - u], axis=1))


def what_it_costs(weights: ArrayLike, epsilon: float) -> str:
    """The price in power, in a sentence."""
    size = effective_sample_size(weights)
    return (
        f"{np.size(weights):,} calibration points count as {size:,.0f} (effective sample size), so the smallest p-value is near "
        f"{1 / (size + 1):.2g} in place of {1 / (np.size(weights) + 1):.2g}. The bound of {epsilon:g} is as good as the weights: it "
        "holds for kinds of points that the calibration set has, in other shares."
    )


def _checked_weights(weights: ArrayLike, scores: FloatArray, name: str) -> FloatArray:
    array = checked_scores(weights, name)
    if array.shape != scores.shape:
        raise ScoreError(
            f"{name} must hold one weight per score: expected shape {scores.shape}, got {array.shape}."
        )
    if array.min() < 0 or array.sum() <= 0:
        raise ScoreError(
            f"{name} must not be negative, nor all be 0, got {array.min():g} to {array.max():g}."
        )
    return array
