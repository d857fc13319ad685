"""Numbers that do not flatter: what AUROC, TNR and FPR are at least, or at most, with probability 1 - delta over the test points.

Promised: all that is computed here holds for endless test data of the same kind, however few points there are and whatever the
scores. Not promised: anything for another kind of OOD; and the bounds of few points are wide. After Novello, Dalmau & Andeol
(2024), "Out-of-distribution detection should use conformal prediction (and vice-versa?)", who correct the FPR by Bates et al.
"""

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from idecode_core.conformal import checked_scores, p_values, threshold
from idecode_core.conformal.conditional import (
    adjusted_p_values,
    corrected_epsilon,
    monte_carlo_bounds,
    simes_bounds,
)
from idecode_core.conformal.ranking import FloatArray
from idecode_core.errors import NothingFlaggedWarning, SettingError
from idecode_core.quality.methods import Evaluation, method_scores

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


def bounds_of(evaluation: Evaluation) -> Bounds | None:
    """The bounds of an evaluation, from the first of its runs: the others are not independent of it. None without its scores."""
    if (source := evaluation.source) is None:
        return None
    known, strange = (
        method_scores(source.calibration, points.score_vectors, source.n, source.method, source.aggregate)[0]
        for points in (source.id_set, source.ood_set)
    )
    return conformal_bounds(known, strange)


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
