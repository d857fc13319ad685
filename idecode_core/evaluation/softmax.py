"""SBP, the softmax baseline (Hendrycks and Gimpel 2017), beside a detector and added to it; from stored scores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal.calibration import Calibration
from idecode_core.evaluation.ablations import CALIBRATION
from idecode_core.evaluation.methods import Metric, evaluate
from idecode_core.evaluation.metrics import auroc
from idecode_core.folder.scores import DRAWS_PER_RUN, RUNS, ScoreSet
from idecode_core.folder.stored import Stored


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
    sbp_id = stored.softmax_scores(stored.id_set.name)
    sbp_ood = np.concatenate([stored.softmax_scores(ood_set.name) for ood_set in stored.ood_sets])
    base_score, icad, five, twenty = (
        evaluate(stored.calibration, stored.id_set, outside, n, method=method).auroc
        for n, method in ((1, "base score"), (1, "ICAD"), (5, "iDECODe"), (20, "iDECODe"))
    )
    together = evaluate(
        with_sbp_calibration(stored),
        with_sbp(stored.id_set, sbp_id),
        with_sbp(outside, sbp_ood),
        DRAWS_PER_RUN,
    )
    sbp = Metric.of([auroc(sbp_id, sbp_ood)] * RUNS)  # it draws nothing, so its runs are alike
    return BesideSoftmax(sbp, base_score, icad, five, twenty, together.auroc)


def with_sbp(score_set: ScoreSet, sbp: NDArray[np.float64]) -> ScoreSet:
    """Each draw's score plus 1 - max softmax of x: both are between 0 and 1, so no ranks are needed to add them."""
    return replace(score_set, score_vectors=score_set.score_vectors + sbp[:, None].astype(np.float32))


def with_sbp_calibration(stored: Stored) -> Calibration:
    """The calibration set under the same sum, in the same precision, so that the added score has a bound of its own."""
    sbp = stored.softmax_scores(CALIBRATION)
    summed = Calibration(stored.calibration.score_vectors + sbp[:, None], stored.calibration.seed)
    return summed.rounded(stored.id_set.score_vectors.dtype)
