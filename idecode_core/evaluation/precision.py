"""How far an evaluation can be trusted: the AUROC's confidence interval from the test set's size; FPR at 95 % TPR beside it."""

from collections.abc import Sequence
from dataclasses import dataclass

from idecode_core.conformal.calibration import Aggregate, Calibration
from idecode_core.evaluation.methods import Metric, method_scores
from idecode_core.evaluation.metrics import auroc_interval, fpr_at_tpr
from idecode_core.folder.scores import ScoreSet

LEVEL = 0.95
TPR = 0.95


@dataclass(frozen=True)
class Precision:
    """One method against one OOD set."""

    interval: tuple[float, float]
    """Of the AUROC, at LEVEL. The spread from run to run is about draws; this is about test points."""
    fpr: Metric


def precisions(
    calibration: Calibration | None,
    id_set: ScoreSet,
    ood_sets: Sequence[ScoreSet],
    n: int = 5,
    aggregate: str | Aggregate = "sum",
    method: str = "iDECODe",
) -> list[Precision]:
    """One per OOD set, from the scores that `evaluate_sets` compares."""
    known = method_scores(calibration, id_set.score_vectors, n, method, aggregate)
    found = []
    for ood_set in ood_sets:
        strange = method_scores(calibration, ood_set.score_vectors, n, method, aggregate)
        pairs = list(zip(known, strange, strict=False))
        found.append(
            Precision(
                auroc_interval(known, strange, LEVEL), Metric.of([fpr_at_tpr(*pair, TPR) for pair in pairs])
            )
        )
    return found
