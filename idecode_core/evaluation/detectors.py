"""Several detectors on one OOD set: the same numbers for each, from stored scores."""

from dataclasses import dataclass, replace

from idecode_core.conformal.calibration import Calibration
from idecode_core.evaluation.methods import Evaluation, evaluate, method_scores
from idecode_core.evaluation.operating import OperatingPoint, operating_point
from idecode_core.evaluation.side_by_side import NamedCurve, curve
from idecode_core.folder.scores import ScoreSet


@dataclass(frozen=True, eq=False, kw_only=True)
class DetectorOnSet(Evaluation):
    """One detector, with n draws, on one OOD set."""

    detector: str
    id_label: str
    ood_label: str
    n: int
    point: OperatingPoint
    curve: NamedCurve  # its label is the detector's name


def detector_on_set(
    name: str,
    calibration: Calibration,
    id_set: ScoreSet,
    ood_set: ScoreSet,
    n: int,
    epsilon: float,
    aggregate: str = "sum",
) -> DetectorOnSet:
    """A row of the table of detectors and its ROC curve."""
    n = min(n, calibration.n_max)
    found = evaluate(calibration, id_set, ood_set, n, aggregate)
    known, strange = (
        method_scores(calibration, one.score_vectors, n, aggregate=aggregate)[0] for one in (id_set, ood_set)
    )
    return DetectorOnSet(
        **vars(found),
        detector=name,
        id_label=id_set.label,
        ood_label=ood_set.label,
        n=n,
        point=operating_point(calibration, id_set, ood_set, n, epsilon, aggregate),
        curve=replace(curve(ood_set, found, known, strange), label=name),
    )
