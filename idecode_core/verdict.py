"""From stored score vectors to verdicts in words: the last lines of Algorithm 1, without the model.

n, epsilon, F, the kind of p-value and the rule for many inputs may change at any time: they only re-slice V.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from idecode_core import conformal
from idecode_core.calibration import Calibration, aggregate_scores
from idecode_core.conformal import FloatArray, checked_scores
from idecode_core.errors import SettingError
from idecode_core.testing.multiple import benjamini_hochberg


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
    """The score above which an input is flagged on its own; inf when none can be."""
    batch: int = 1
    """With false discovery control, how many inputs were judged together; else 1."""

    @property
    def answer(self) -> str:
        return "flagged" if self.is_ood else "not flagged"


def judge(
    calibration: Calibration,
    score_vectors: ArrayLike,
    *,
    n: int,
    epsilon: float,
    aggregate: str = "sum",
    smoothed_by: Sequence[np.random.Generator] | None = None,
    false_discovery_control: bool = False,
) -> list[Verdict]:
    """Verdicts from score vectors (batch, at least n), by their first n entries.

    `smoothed_by` holds one generator a point, see `smoothing_generator`. With `false_discovery_control` the batch
    is judged together by Benjamini-Hochberg at q = epsilon, in place of p < epsilon.

    >>> calibration = Calibration([[0.1, 0.2], [0.3, 0.1], [0.5, 0.9]])
    >>> [verdict.p_value for verdict in judge(calibration, [[0.4, 0.5]], n=2, epsilon=0.3)]
    [0.5]
    """
    vectors = checked_scores(score_vectors, "score_vectors", ndim=2)
    if vectors.shape[1] < n:
        raise SettingError(
            f"n={n} draws were asked for, but these score vectors hold {vectors.shape[1]}. Score anew."
        )
    vectors = vectors[:, :n]
    conformal.check_epsilon(epsilon)
    calibration_scores = calibration.scores(n, aggregate)  # (k,)
    scores = aggregate_scores(vectors, aggregate)  # (batch,)
    ranks = conformal.ranks(calibration_scores, scores)
    if smoothed_by is None:
        p = conformal.p_values(calibration_scores, scores)
    else:
        p = np.array(
            [
                conformal.smoothed_p_values(calibration_scores, [score], generator=generator)[0]
                for score, generator in zip(scores, smoothed_by, strict=True)
            ]
        )
    is_ood = benjamini_hochberg(p, epsilon) if false_discovery_control else p < epsilon
    threshold = conformal.threshold(calibration_scores, epsilon)
    batch = len(scores) if false_discovery_control else 1
    return [
        Verdict(
            float(scores[i]),
            int(ranks[i]),
            calibration.k,
            float(p[i]),
            epsilon,
            bool(is_ood[i]),
            threshold,
            batch,
        )
        for i in range(len(scores))
    ]


def smoothing_generator(content_hash: str, seed: int) -> np.random.Generator:
    """The random number that breaks ties for one input: a function of (seed, content), as its draws are."""
    return np.random.default_rng([seed, int(content_hash, 16)])


def p_by_n(calibration: Calibration, score_vector: ArrayLike, aggregate: str = "sum") -> FloatArray:
    """The p-value with the first 1, 2, ..., n_max draws of one input: shape (n_max,)."""
    vector = checked_scores(score_vector, "score_vector")
    n_max = min(vector.size, calibration.n_max)
    return np.array([calibration.p_values(vector[None, :n], aggregate)[0] for n in range(1, n_max + 1)])


def places(calibration: Calibration, base_scores: ArrayLike) -> FloatArray:
    """For base scores of single draws: the share of all the calibration set's base scores that lie below each.

    >>> places(Calibration([[0.1, 0.2], [0.3, 0.4]]), [0.25, 9.0])
    array([0.5, 1. ])
    """
    reference = np.sort(calibration.score_vectors, axis=None)
    scores = checked_scores(base_scores, "base_scores")
    return np.asarray(np.searchsorted(reference, scores, side="left") / reference.size, dtype=np.float64)


def sentence(verdict: Verdict, noun: str = "image") -> str:
    """The verdict in words first, in numbers second."""
    k = f"{verdict.k:,}"
    if verdict.rank == 0:
        strange = f"none of the {k} calibration {noun}s was this strange"
    elif verdict.rank == verdict.k:
        strange = f"all {k} calibration {noun}s were at least this strange"
    else:
        only = "only " if verdict.is_ood else ""
        were = "was" if verdict.rank == 1 else "were"
        strange = f"{only}{verdict.rank:,} of {k} calibration {noun}s {were} at least this strange"
    if verdict.batch > 1:
        numbers = f"p = {verdict.p_value:.3g}, among {verdict.batch} files with false discoveries kept to {verdict.epsilon:g}"
    else:
        numbers = comparison(verdict.p_value, verdict.epsilon)
    return f"{verdict.answer.capitalize()}: {strange} ({numbers})."


def comparison(p: float, epsilon: float) -> str:
    """ "p = 0.004 < epsilon = 0.05", with as many digits as it takes to tell the two apart."""
    digits = 3
    while digits < 17 and p != epsilon and f"{p:.{digits}g}" == f"{epsilon:.{digits}g}":
        digits += 1
    return f"p = {p:.{digits}g} {'<' if p < epsilon else '≥'} epsilon = {epsilon:g}"


def meaning(verdict: Verdict, noun: str = "image") -> tuple[str, str]:
    """What the verdict means, and what it does not: two ends of a sentence."""
    if conformal.flagging_rank(verdict.k, verdict.epsilon) == 0:
        smallest = 1 / (verdict.k + 1)
        return (
            f"with {verdict.k:,} calibration {noun}s nothing can ever be flagged at epsilon = {verdict.epsilon:g}: the "
            f"smallest possible p-value is {smallest:.3g}.",
            f"that the {noun} belongs. Choose a larger epsilon.",
        )
    if verdict.is_ood:
        return (
            f"{noun}s like those of the calibration set come out this strange in at most {100 * verdict.p_value:.3g} % of "
            f"cases; with epsilon = {verdict.epsilon:g}, at most {100 * verdict.epsilon:g} % of them are flagged, on average.",
            f"that the {noun} belongs with probability {verdict.p_value:.3g}; nor does it say what is strange about it.",
        )
    return (
        f"among {noun}s like those of the calibration set this one does not stand out: {100 * verdict.p_value:.3g} % of them are "
        "at least as strange.",
        f"that the {noun} belongs: the detector may be blind to what is different about it.",
    )
