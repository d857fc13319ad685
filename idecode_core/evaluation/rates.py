"""False detection rates of the iD test points, each beside the band that holds it in 99 % of cases."""

from collections.abc import Sequence
from dataclasses import dataclass

from idecode_core.conformal import FloatArray, observed_band
from idecode_core.evaluation.methods import runs
from idecode_core.evaluation.metrics import false_detection_rate
from idecode_core.folder.stored import Stored


@dataclass(frozen=True)
class RateInBand:
    """The share of iD test points that is flagged at epsilon, and its exact band (conformal.law)."""

    epsilon: float
    rate: float
    low: float
    high: float

    @property
    def inside(self) -> bool:
        return self.low <= self.rate <= self.high

    def __str__(self) -> str:
        """In percent.

        >>> str(RateInBand(0.05, 0.0512, 0.04, 0.0613))
        '5.1 [4.0, 6.1]'
        """
        return f"{100 * self.rate:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def id_p_values(stored: Stored, n: int) -> FloatArray:
    """p-values of the iD test points, from the first run of n draws."""
    return stored.calibration.p_values(runs(stored.id_set.score_vectors, n)[0])


def rates_in_bands(stored: Stored, n: int, epsilons: Sequence[float]) -> list[RateInBand]:
    """A detector's false detection rate at each epsilon."""
    p = id_p_values(stored, n)
    return [
        RateInBand(
            epsilon,
            false_detection_rate(p, epsilon),
            *observed_band(stored.calibration.k, epsilon, len(stored.id_set)),
        )
        for epsilon in epsilons
    ]
