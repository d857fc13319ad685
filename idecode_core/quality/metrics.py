"""How well scores separate iD from OOD. iD is the positive class; a larger score is stranger; rates are 0 to 1.

`Bounds` are numbers that do not flatter: what AUROC, TNR and FPR are at least, or at most, with probability 1 - delta over the test
points. Promised: they hold for endless test data of the same kind, however few points there are and whatever the scores. Not
promised: anything for another kind of OOD; and the bounds of few points are wide. After Novello, Dalmau & Andeol (2024),
"Out-of-distribution detection should use conformal prediction (and vice-versa?)", who correct the FPR by Bates et al.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats
from sklearn.metrics import roc_curve

from idecode_core.conformal import (
    FloatArray,
    check_epsilon,
    checked_p_values,
    checked_scores,
    p_values,
    threshold,
)
from idecode_core.conformal.conditional import (
    adjusted_p_values,
    corrected_epsilon,
    monte_carlo_bounds,
    simes_bounds,
)
from idecode_core.errors import NothingFlaggedWarning, SettingError


@dataclass(frozen=True, eq=False)
class RocCurve:
    """One point per threshold: a test point is kept as iD when its score is <= the threshold."""

    false_positive_rate: FloatArray  # share of OOD points kept as iD
    true_positive_rate: FloatArray  # share of iD points kept as iD
    thresholds: FloatArray  # scores; rising; the first is -inf (nothing is kept)


def auroc(id_scores: ArrayLike, ood_scores: ArrayLike) -> float:
    """P(an OOD point scores higher than an iD point), ties counted half.

    >>> auroc(id_scores=[1.0, 2.0], ood_scores=[2.0, 3.0])
    0.875
    """
    # Counting pairs with a sorted array is exact and a hundred times faster than scikit-learn's roc_auc_score, whose
    # checks take milliseconds: pages compute dozens of these while a slider moves.
    known = np.sort(checked_scores(id_scores, "id_scores"))
    strange = checked_scores(ood_scores, "ood_scores")
    twice = np.searchsorted(known, strange, "left").sum() + np.searchsorted(known, strange, "right").sum()
    return float(twice / (2 * known.size * strange.size))


def roc(id_scores: ArrayLike, ood_scores: ArrayLike) -> RocCurve:
    """The whole ROC curve, with every threshold kept.

    >>> roc(id_scores=[1.0, 2.0], ood_scores=[2.0, 3.0]).true_positive_rate
    array([0. , 0.5, 1. , 1. ])
    """
    known, strange = checked_scores(id_scores, "id_scores"), checked_scores(ood_scores, "ood_scores")
    is_id = np.r_[np.ones(known.size), np.zeros(strange.size)]
    # negated, because scikit-learn wants large = positive
    let_through, kept, thresholds = roc_curve(is_id, -np.r_[known, strange], drop_intermediate=False)
    return RocCurve(let_through, kept, -thresholds)


def tnr_at_tpr(id_scores: ArrayLike, ood_scores: ArrayLike, tpr: float = 0.9) -> float:
    """The share of OOD points detected when at least a share `tpr` of the iD points is kept.

    The threshold is the lowest iD score that keeps enough: points above it are detected, ties with it are kept.

    >>> tnr_at_tpr(id_scores=range(10), ood_scores=[5.0, 8.0, 9.0, 12.0])
    0.5
    """
    strange = checked_scores(ood_scores, "ood_scores")
    return float(np.mean(strange > _keeping(id_scores, tpr)))


def fpr_at_tpr(id_scores: ArrayLike, ood_scores: ArrayLike, tpr: float = 0.95) -> float:
    """The share of OOD points let through when at least a share `tpr` of the iD points is kept: "FPR95".

    >>> fpr_at_tpr(id_scores=range(20), ood_scores=[5.0, 18.0, 19.0, 22.0])
    0.5
    """
    strange = checked_scores(ood_scores, "ood_scores")
    return float(np.mean(strange <= _keeping(id_scores, tpr)))


def _keeping(id_scores: ArrayLike, tpr: float) -> float:
    """The lowest iD score that keeps at least a share `tpr` of the iD points."""
    if not 0.0 < tpr <= 1.0:
        raise SettingError(f"tpr must lie above 0 and be at most 1, got {tpr}. A usual choice is 0.9.")
    known = np.sort(checked_scores(id_scores, "id_scores"))
    # Compare counts / size with tpr, not counts with tpr * size: 0.7 * 10 is 7.000000000000001 in some products.
    kept = np.arange(1, known.size + 1) / known.size
    return float(known[np.argmax(kept >= tpr)])


def auroc_interval(
    id_runs: Sequence[ArrayLike], ood_runs: Sequence[ArrayLike], level: float = 0.95
) -> tuple[float, float]:
    """Where the AUROC lies that endless test data would give: DeLong, DeLong & Clarke-Pearson (1988), on the logit scale.

    Runs are scores of the same test points under other draws; the interval is for the mean of their AUROCs. When all
    pairs are in the right order there is no spread to go by; the interval then is the exact one for min(N, M)
    independent pairs.

    >>> [round(end, 3) for end in auroc_interval([[1.0, 2.0, 3.0, 4.0]], [[2.5, 3.5, 5.0, 6.0]])]
    [0.329, 0.975]
    """
    if not 0.0 < level < 1.0:
        raise SettingError(f"level must lie strictly between 0 and 1, got {level}. A usual choice is 0.95.")
    placed = [_placements(known, strange) for known, strange in zip(id_runs, ood_runs, strict=False)]
    of_id, of_ood = (np.mean(runs, axis=0) for runs in zip(*placed, strict=True))  # (N,), (M,)
    area, tail, pairs = float(np.mean(of_ood)), (1 - level) / 2, min(of_id.size, of_ood.size)
    variance = _squared_error(of_id) + _squared_error(of_ood)
    if 0.0 < area < 1.0:
        if variance == 0.0 or pairs < 2:
            return 0.0, 1.0
        half = -special.ndtri(tail) * np.sqrt(variance) / (area * (1 - area))
        low, high = special.expit(special.logit(area) + np.array([-half, half]))
        return float(low), float(high)
    return (tail ** (1 / pairs), 1.0) if area == 1.0 else (0.0, 1 - tail ** (1 / pairs))


def _placements(id_scores: ArrayLike, ood_scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Per iD point the share of OOD points above it, and per OOD point the share of iD points below it; ties are half."""
    known = checked_scores(id_scores, "id_scores")
    strange = checked_scores(ood_scores, "ood_scores")

    def below(points: FloatArray, others: FloatArray) -> FloatArray:
        rising = np.sort(others)
        both = np.searchsorted(rising, points, "left") + np.searchsorted(rising, points, "right")
        return np.asarray(both / (2 * others.size), dtype=np.float64)

    return 1 - below(known, strange), below(strange, known)


def _squared_error(values: FloatArray) -> float:
    return float(np.var(values, ddof=1)) / values.size if values.size > 1 else 0.0


def false_detection_rate(p_values: ArrayLike, epsilon: float) -> float:
    """The share of these iD points that is flagged, p < epsilon: the paper's FDR, a rate per point.

    >>> false_detection_rate([0.01, 0.05, 0.5, 0.9], epsilon=0.05)
    0.25
    """
    check_epsilon(epsilon)
    return float(np.mean(checked_p_values(p_values) < epsilon))


DELTA = 0.05


@dataclass(frozen=True)
class Bounds:
    """Each holds with probability 1 - delta over both test sets, by itself."""

    delta: float
    auroc: float  # at least
    tnr: float  # at least: OOD points detected at a threshold that keeps, in truth, 90 % of the iD points
    fpr: float  # at most: OOD points let through at a threshold that keeps, in truth, 95 % of the iD points


def conformal_bounds(id_scores: ArrayLike, ood_scores: ArrayLike, delta: float = DELTA) -> Bounds:
    """Half of delta for each of the two test sets.

    >>> bounds = conformal_bounds(range(200), range(150, 350))
    >>> round(bounds.auroc, 2), round(bounds.tnr, 2), round(bounds.fpr, 2)
    (0.89, 0.74, 0.3)
    """
    if not 0.0 < delta < 1.0:
        raise SettingError(
            f"delta must lie strictly between 0 and 1, got {delta}. A usual choice is {DELTA:g}."
        )
    known, strange = checked_scores(id_scores, "id_scores"), checked_scores(ood_scores, "ood_scores")
    return Bounds(
        delta,
        _auroc_at_least(known, strange, delta),
        _detected_at_least(known, strange, 0.1, delta),
        1 - _detected_at_least(known, strange, 0.05, delta),
    )


def _auroc_at_least(known: FloatArray, strange: FloatArray, delta: float) -> float:
    """P(iD score < OOD score), with P(iD score >= s) at most h(p(s)) for all s, and the OOD law as far left as its bound allows."""
    # rising
    beaten = 1 - adjusted_p_values(p_values(known, np.sort(strange)), _bounds(known.size, delta / 2))
    cdf = _bounds(strange.size, delta / 2)  # F(s_(i)) <= b_i for all i
    worst = np.diff(cdf)  # the mass that may at most lie between s_(i) and s_(i+1), counted at s_(i)
    return float(np.clip(worst @ beaten, 0.0, 1.0))


@lru_cache(maxsize=64)
def _bounds(count: int, delta: float) -> FloatArray:
    """Tight where few points lie beyond, which is what a large AUROC is made of. Proven with the randomness of its simulation."""
    if count == 1:
        return simes_bounds(count, delta)
    repeats = max(2_000, math.ceil(1 / delta))
    return monte_carlo_bounds(count, delta, generator=np.random.default_rng(count), repeats=repeats)


def _detected_at_least(known: FloatArray, strange: FloatArray, epsilon: float, delta: float) -> float:
    """A threshold that flags at most epsilon of the iD points in truth, and the exact (Clopper-Pearson) bound on what it detects."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingFlaggedWarning)
        limit = threshold(known, min(corrected_epsilon(known.size, epsilon, delta / 2), 1 - 1e-12))
    hits = int(np.count_nonzero(strange > limit))
    return float(stats.beta.ppf(delta / 2, hits, strange.size - hits + 1)) if hits else 0.0
