"""SBP, the softmax baseline (Hendrycks and Gimpel 2017), beside a detector and added to it; from stored scores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal.calibration import Calibration
from idecode_core.folder.shelf import CALIBRATION, DRAWS_PER_RUN, RUNS, SBP, ScoreSet
from idecode_core.folder.stored import Stored
from idecode_core.quality.methods import Metric, evaluate
from idecode_core.quality.metrics import auroc


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
    softmax = stored.beside(SBP)
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
