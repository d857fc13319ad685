"""The last lines of Algorithm 1, in one place: score vectors and a calibration in, verdicts out.

n, epsilon, F, the kind of p-value and the rule for many inputs may change at any time: they only re-slice V.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idecode_core import conformal
from idecode_core.conformal import FloatArray, IntArray, checked_scores
from idecode_core.conformal.calibration import Aggregate, Calibration, aggregate_scores
from idecode_core.conformal.groups import mondrian_p_values
from idecode_core.conformal.integrative import integrative_p_values
from idecode_core.conformal.multiple import benjamini_hochberg, benjamini_hochberg_cut
from idecode_core.conformal.weighted import weighted_p_values, weighted_selection
from idecode_core.errors import SettingError


@dataclass(frozen=True)
class Verdict:
    """What Algorithm 1 says of one input."""

    score: float  # F(V(x))
    rank: int  # #{j : F(V(x_j)) >= F(V(x))}
    k: int
    p_value: float
    epsilon: float
    is_ood: bool
    threshold: float
    """The score above which an input is flagged; inf when none can be."""
    batch: int = 1
    """With false discovery control, how many inputs were judged together; else 1."""

    @property
    def answer(self) -> str:
        return "flagged" if self.is_ood else "not flagged"


@dataclass(frozen=True, eq=False)
class Judgement:
    """What Algorithm 1 says of a batch; `judgement[i]` is the verdict on one of its points."""

    scores: FloatArray  # (batch,): F(V(x))
    ranks: IntArray  # (batch,): #{j : F(V(x_j)) >= F(V(x))}
    p_values: FloatArray  # (batch,): P of Eq. 5
    is_ood: NDArray[np.bool_]  # (batch,)
    threshold: float
    """The score above which a point is flagged; inf when none can be. With groups, weights or outliers, that without them."""
    k: int
    epsilon: float
    together: bool = False
    """Whether the batch was judged by false discovery control, in place of p < epsilon."""

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, i: int) -> Verdict:
        return Verdict(
            float(self.scores[i]),
            int(self.ranks[i]),
            self.k,
            float(self.p_values[i]),
            self.epsilon,
            bool(self.is_ood[i]),
            self.threshold,
            len(self) if self.together else 1,
        )

    def __iter__(self) -> Iterator[Verdict]:
        return (self[i] for i in range(len(self)))


def judge(
    calibration: Calibration,
    score_vectors: ArrayLike,
    *,
    n: int | None = None,
    epsilon: float = 0.05,
    aggregate: str | Aggregate = "sum",
    smoothed_by: Sequence[np.random.Generator] | None = None,
    groups: tuple[ArrayLike, ArrayLike] | None = None,
    weights: tuple[ArrayLike, ArrayLike] | None = None,
    outliers: ArrayLike | None = None,
    false_discovery_control: bool = False,
) -> Judgement:
    """Verdicts from score vectors (batch, at least n), by their first n entries; by all of them when n is None. p-values do not
    depend on epsilon.

    `smoothed_by` holds one generator per point, see `smoothing_generator`. `groups` are the calibration points' and
    the test points' groups: a point is then ranked within its own. `weights` are the calibration points' and the test points'
    for a source that has shifted (`conformal.weighted`), `outliers` the score vectors of known outliers, which say in which draws to
    look (`conformal.integrative`). With `false_discovery_control` the batch is judged together by Benjamini-Hochberg at q = epsilon,
    in place of p < epsilon; with weights by weighted selection.

    >>> calibration = Calibration([[0.1, 0.2], [0.3, 0.1], [0.5, 0.9]])
    >>> judge(calibration, [[0.4, 0.5]], n=2, epsilon=0.3).p_values
    array([0.5])
    """
    vectors = checked_scores(score_vectors, "score_vectors", ndim=2)  # (batch, n or more)
    n = vectors.shape[1] if n is None else n
    if vectors.shape[1] < n:
        raise SettingError(
            f"n={n} draws were asked for, but these score vectors hold {vectors.shape[1]}. Score again with more draws."
        )
    conformal.check_epsilon(epsilon)
    calibration_scores = calibration.scores(n, aggregate)  # (k,)
    scores = aggregate_scores(vectors[:, :n], aggregate)  # (batch,): F(V(x))
    asked = [option is not None for option in (smoothed_by, groups, weights, outliers)]
    if sum(asked) > 1 or (outliers is not None and false_discovery_control):
        raise SettingError(
            "Smoothed p-values, groups, weights and outliers do not go together, nor outliers with false discovery control: nothing is "
            "proven for both; leave one of them out."
        )
    if outliers is not None:
        strange = checked_scores(outliers, "outliers", ndim=2)[:, :n]
        p = integrative_p_values(calibration.score_vectors[:, :n], strange, vectors[:, :n])
    elif weights is not None:
        p = weighted_p_values(calibration_scores, weights[0], scores, weights[1])
    else:
        p = _p_values(calibration_scores, scores, smoothed_by, groups)  # Eq. 5
    is_ood = benjamini_hochberg(p, epsilon) if false_discovery_control else p < epsilon
    if weights is not None and false_discovery_control:
        is_ood = weighted_selection(calibration_scores, weights[0], scores, weights[1], epsilon)
    cut = benjamini_hochberg_cut(p, epsilon) if false_discovery_control else epsilon
    return Judgement(
        scores,
        conformal.ranks(calibration_scores, scores),
        p,
        is_ood,
        conformal.threshold(calibration_scores, cut),
        calibration.k,
        epsilon,
        false_discovery_control,
    )


def _p_values(
    calibration_scores: FloatArray,
    scores: FloatArray,
    smoothed_by: Sequence[np.random.Generator] | None,
    groups: tuple[ArrayLike, ArrayLike] | None,
) -> FloatArray:
    if groups is not None:
        return mondrian_p_values(calibration_scores, groups[0], scores, groups[1])
    if smoothed_by is None:
        return conformal.p_values(calibration_scores, scores)
    smoothed = [
        conformal.smoothed_p_values(calibration_scores, [score], generator=generator)[0]
        for score, generator in zip(scores, smoothed_by, strict=True)
    ]
    return np.array(smoothed)


def smoothing_generator(content_hash: str, seed: int) -> np.random.Generator:
    """The random number that breaks ties for one input: a function of (seed, content), as its draws are."""
    return np.random.default_rng([seed, int(content_hash, 16)])


def p_by_n(calibration: Calibration, score_vector: ArrayLike, aggregate: str = "sum") -> FloatArray:
    """The p-value with the first 1, 2, ..., n_max draws of one input: shape (n_max,)."""
    vector = checked_scores(score_vector, "score_vector")
    n_max = min(vector.size, calibration.n_max)
    judged = (judge(calibration, vector[None], n=n, aggregate=aggregate) for n in range(1, n_max + 1))
    return np.array([judgement.p_values[0] for judgement in judged])


def places(calibration: Calibration, base_scores: ArrayLike) -> FloatArray:
    """For base scores of single draws: the share of all the calibration set's base scores that lie below each.

    >>> places(Calibration([[0.1, 0.2], [0.3, 0.4]]), [0.25, 9.0])
    array([0.5, 1. ])
    """
    reference = np.sort(calibration.score_vectors, axis=None)
    scores = checked_scores(base_scores, "base_scores")
    return np.asarray(np.searchsorted(reference, scores, side="left") / reference.size, dtype=np.float64)
