"""How well scores separate iD from OOD. iD is the positive class; a larger score is stranger; rates are 0 to 1."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import roc_curve

from idecode_core.conformal import FloatArray, check_epsilon, checked_p_values, checked_scores
from idecode_core.errors import SettingError


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
    is_id, conformity = _labelled(id_scores, ood_scores)
    false_positive_rate, true_positive_rate, thresholds = roc_curve(
        is_id, conformity, drop_intermediate=False
    )
    return RocCurve(false_positive_rate, true_positive_rate, -thresholds)


def tnr_at_tpr(id_scores: ArrayLike, ood_scores: ArrayLike, tpr: float = 0.9) -> float:
    """The share of OOD points detected when at least a share `tpr` of the iD points is kept.

    The threshold is the lowest iD score that keeps enough: points above it are detected, ties with it are kept.

    >>> tnr_at_tpr(id_scores=range(10), ood_scores=[5.0, 8.0, 9.0, 12.0])
    0.5
    """
    if not 0.0 < tpr <= 1.0:
        raise SettingError(f"tpr must lie above 0 and be at most 1, got {tpr}. A usual choice is 0.9.")
    known = np.sort(checked_scores(id_scores, "id_scores"))
    strange = checked_scores(ood_scores, "ood_scores")
    # Compare counts / size with tpr, not counts with tpr * size: 0.7 * 10 is 7.000000000000001 in some products.
    kept = np.arange(1, known.size + 1) / known.size
    threshold = known[np.argmax(kept >= tpr)]
    return float(np.mean(strange > threshold))


def false_detection_rate(p_values: ArrayLike, epsilon: float) -> float:
    """The share of these iD points that is flagged, p < epsilon: the paper's FDR, a rate per point.

    >>> false_detection_rate([0.01, 0.05, 0.5, 0.9], epsilon=0.05)
    0.25
    """
    check_epsilon(epsilon)
    return float(np.mean(checked_p_values(p_values) < epsilon))


def _labelled(id_scores: ArrayLike, ood_scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Labels (1 = iD) and conformity, the negated score, because scikit-learn wants large = positive."""
    known = checked_scores(id_scores, "id_scores")
    strange = checked_scores(ood_scores, "ood_scores")
    return np.r_[np.ones(known.size), np.zeros(strange.size)], -np.r_[known, strange]
