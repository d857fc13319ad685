"""Base score, ICAD and iDECODe from stored score vectors: AUROC and TNR over independent runs of draws.

Of 100 stored draws, run r with n draws is columns 20 r .. 20 r + n - 1. SBP, the softmax baseline (Hendrycks and Gimpel 2017),
stands beside a detector, and is added to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal import FloatArray
from idecode_core.conformal.calibration import Aggregate, Calibration, aggregate_scores
from idecode_core.conformal.judge import Judgement, judge
from idecode_core.errors import SettingError
from idecode_core.files.shown import Shown
from idecode_core.folder.shelf import CALIBRATION, DRAWS_PER_RUN, RUNS, SBP, ScoreSet
from idecode_core.folder.stored import Stored
from idecode_core.quality.metrics import (
    Bounds,
    auroc,
    auroc_interval,
    conformal_bounds,
    fpr_at_tpr,
    tnr_at_tpr,
)

METHODS = ("base score", "ICAD", "iDECODe")
"""base score: one draw, its raw score. ICAD: one draw, its p-value. iDECODe: n draws, the p-value of F(V)."""


def runs(score_vectors: NDArray[np.floating], n: int) -> list[FloatArray]:
    """The independent runs of n draws, five where there are as many columns, each (N, n). None shares a column with another.

    >>> vectors = np.arange(25)[None]  # (1, 25)
    >>> [len(runs(vectors, n)) for n in (1, 5, 20)], runs(vectors, 2)[1]
    ([5, 5, 1], array([[5., 6.]]))
    """
    limit = min(DRAWS_PER_RUN, score_vectors.shape[1])
    if not 1 <= n <= limit:
        raise SettingError(f"n must lie between 1 and {limit}, the draws of one stored run, got {n}.")
    vectors = score_vectors.astype(np.float64)
    columns = vectors.shape[1]
    apart = max(n, columns // RUNS)  # 20 of 100 columns
    return [vectors[:, first : first + n] for first in range(0, columns - n + 1, apart)][:RUNS]


@dataclass(frozen=True)
class Metric:
    """One number over the independent runs: its mean and its standard deviation from run to run."""

    mean: float
    spread: float
    values: tuple[float, ...]

    @staticmethod
    def of(values: Sequence[float]) -> "Metric":
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return Metric(float(np.mean(values)), spread, tuple(float(value) for value in values))


@dataclass(frozen=True, eq=False)
class EvaluatedScores:
    """The scores that an evaluation is of."""

    calibration: Calibration | None
    id_set: ScoreSet
    ood_set: ScoreSet
    n: int
    aggregate: str | Aggregate
    method: str


@dataclass(frozen=True)
class Evaluation(Shown):
    """One method against one OOD set; rates are 0 to 1."""

    auroc: Metric
    tnr: Metric  # at 90 % TPR
    fpr: Metric  # at 95 % TPR
    interval: tuple[float, float]
    """Of the AUROC, at 95 %. The spread from run to run is about draws; this is about test points."""
    source: EvaluatedScores | None = field(default=None, kw_only=True, repr=False, compare=False)
    """What it can be drawn from, where it was made by `evaluate`."""

    def explore(self) -> Any:
        """Sliders for n and epsilon in a notebook, from the stored scores."""
        return import_module("idecode_core.report.explore").explore_evaluation(self)  # a layer above


def compare(known: Sequence[FloatArray], strange: Sequence[FloatArray]) -> Evaluation:
    """From one score per point, larger = stranger: a list of runs for iD points, and one for OOD points."""
    pairs = list(zip(known, strange, strict=False))  # a user's own sets may have fewer runs than others
    area, tnr, fpr = (
        Metric.of([metric(*pair) for pair in pairs]) for metric in (auroc, tnr_at_tpr, fpr_at_tpr)
    )
    return Evaluation(area, tnr, fpr, auroc_interval(known, strange))


def draws(method: str, n: int) -> int:
    """How many draws a method uses when iDECODe uses n."""
    if method not in METHODS:
        raise SettingError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
    return n if method == "iDECODe" else 1


def method_scores(
    calibration: Calibration | None,
    score_vectors: NDArray[np.floating],
    n: int,
    method: str = "iDECODe",
    aggregate: str | Aggregate = "sum",
) -> list[FloatArray]:
    """One score per point for each run, larger = stranger: raw for the base score, -P (Eq. 5) for the others.

    Without a calibration, which only a user's own scores lack, F(V) itself stands for its p-value: the order of the
    points is the same, up to ties.
    """
    each_run = runs(score_vectors, draws(method, n))
    if calibration is None:
        return [aggregate_scores(run, aggregate) for run in each_run]
    if method == "base score":
        return [aggregate_scores(run, "sum") for run in each_run]
    # all runs are ranked at once
    p = judge(calibration, np.concatenate(each_run), aggregate=aggregate).p_values
    return np.split(-p, len(each_run))


def evaluate_sets(
    calibration: Calibration | None,
    id_set: ScoreSet,
    ood_sets: Sequence[ScoreSet],
    n: int = 5,
    aggregate: str | Aggregate = "sum",
    method: str = "iDECODe",
) -> list[Evaluation]:
    """One method on each OOD set, over the independent runs; the iD set is ranked once for all of them."""
    known = method_scores(calibration, id_set.score_vectors, n, method, aggregate)
    return [
        replace(
            compare(known, method_scores(calibration, ood_set.score_vectors, n, method, aggregate)),
            source=EvaluatedScores(calibration, id_set, ood_set, n, aggregate, method),
        )
        for ood_set in ood_sets
    ]


def evaluate(
    calibration: Calibration | None,
    id_set: ScoreSet,
    ood_set: ScoreSet,
    n: int = 5,
    aggregate: str | Aggregate = "sum",
    method: str = "iDECODe",
) -> Evaluation:
    """One method on one OOD set."""
    return evaluate_sets(calibration, id_set, [ood_set], n, aggregate, method)[0]


def bounds_of(evaluation: Evaluation) -> Bounds | None:
    """The bounds of an evaluation, from the first of its runs: the others are not independent of it. None without its scores."""
    if (source := evaluation.source) is None:
        return None
    known, strange = (
        method_scores(source.calibration, points.score_vectors, source.n, source.method, source.aggregate)[0]
        for points in (source.id_set, source.ood_set)
    )
    return conformal_bounds(known, strange)


def judge_runs(
    calibration: Calibration,
    score_vectors: NDArray[np.floating],
    n: int,
    epsilon: float,
    aggregate: str | Aggregate = "sum",
) -> list[Judgement]:
    """What Algorithm 1 says of each run."""
    return [judge(calibration, run, epsilon=epsilon, aggregate=aggregate) for run in runs(score_vectors, n)]


def flagged_share(
    calibration: Calibration,
    score_vectors: NDArray[np.floating],
    n: int,
    epsilon: float,
    aggregate: str | Aggregate = "sum",
) -> float:
    """The share of points with P < epsilon, over all runs: false detections of an iD set, detections of an OOD set."""
    together = np.concatenate(runs(score_vectors, n))
    return float(judge(calibration, together, epsilon=epsilon, aggregate=aggregate).is_ood.mean())


def share_of(judged: Sequence[Judgement]) -> float:
    """The share of points that are flagged, over all runs."""
    return float(np.mean([run.is_ood for run in judged]))


@dataclass(frozen=True)
class BesideSoftmax:
    """AUROC of one detector against all of its OOD sets together."""

    sbp: Metric
    base_score: Metric
    icad: Metric
    five: Metric  # iDECODe, n = 5
    twenty: Metric
    with_sbp: Metric  # SBP added to each of 20 draws, and calibrated together

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(vars(self).values())


def pooled(sets: Sequence[ScoreSet]) -> ScoreSet:
    """All OOD sets as one."""
    vectors = np.concatenate([score_set.score_vectors for score_set in sets])
    return ScoreSet("others", "the other categories", True, vectors)


def beside_softmax(stored: Stored) -> BesideSoftmax:
    outside = pooled(stored.ood_sets)
    softmax = stored.scores_of(SBP)
    sbp_id = softmax.once(stored.id_set.name)
    sbp_ood = np.concatenate([softmax.once(ood_set.name) for ood_set in stored.ood_sets])
    base_score, icad, five, twenty = (
        evaluate(stored.calibration, stored.id_set, outside, n, method=method).auroc
        for n, method in ((1, "base score"), (1, "ICAD"), (5, "iDECODe"), (20, "iDECODe"))
    )
    together = evaluate(
        with_sbp_calibration(stored, softmax.once(CALIBRATION)),
        with_sbp(stored.id_set, sbp_id),
        with_sbp(outside, sbp_ood),
        DRAWS_PER_RUN,
    )
    sbp = Metric.of([auroc(sbp_id, sbp_ood)] * RUNS)  # it draws nothing, so its runs are alike
    return BesideSoftmax(sbp, base_score, icad, five, twenty, together.auroc)


def with_sbp(score_set: ScoreSet, sbp: NDArray[np.float64]) -> ScoreSet:
    """Each draw's score plus 1 - max softmax of x: both are between 0 and 1, so no ranks are needed to add them."""
    return replace(score_set, score_vectors=score_set.score_vectors + sbp[:, None].astype(np.float32))


def with_sbp_calibration(stored: Stored, sbp: NDArray[np.float64]) -> Calibration:
    """The calibration set under the same sum, in the same precision, so that the added score has a bound of its own."""
    summed = Calibration(stored.calibration.score_vectors + sbp[:, None], stored.calibration.seed)
    return summed.rounded(stored.id_set.score_vectors.dtype)
