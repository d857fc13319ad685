"""What Algorithm 1 does at one epsilon: how many of what belongs and of what does not are flagged."""

from dataclasses import dataclass

from idecode_core.conformal.calibration import Aggregate, Calibration
from idecode_core.conformal.judge import judge
from idecode_core.folder.scores import ScoreSet


@dataclass(frozen=True)
class OperatingPoint:
    """Counts of the first run of draws, the one that Guarantee counts too, so that both pages say the same."""

    epsilon: float
    id_flagged: int
    id_points: int
    ood_flagged: int
    ood_points: int

    @property
    def id_share(self) -> float:
        return self.id_flagged / self.id_points

    @property
    def ood_share(self) -> float:
        return self.ood_flagged / self.ood_points

    @property
    def on_roc(self) -> tuple[float, float]:
        """The point of the ROC curve: OOD points let through, iD points kept."""
        return 1 - self.ood_share, 1 - self.id_share


def operating_point(
    calibration: Calibration,
    id_set: ScoreSet,
    ood_set: ScoreSet,
    n: int,
    epsilon: float,
    aggregate: str | Aggregate = "sum",
) -> OperatingPoint:
    """One detector on one OOD set, conservative p-values."""
    known, strange = (
        judge(calibration, one.score_vectors, n=n, epsilon=epsilon, aggregate=aggregate).is_ood
        for one in (id_set, ood_set)
    )
    return OperatingPoint(epsilon, int(known.sum()), len(known), int(strange.sum()), len(strange))
