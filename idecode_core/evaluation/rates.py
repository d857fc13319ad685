"""False detection rates of the iD test points, each beside the band that holds it in 99 % of cases."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal import FloatArray, observed_band
from idecode_core.conformal.calibration import Calibration
from idecode_core.evaluation.methods import flagged_share, method_scores
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
    return -method_scores(stored.calibration, stored.id_set.score_vectors, n)[0]


def rates_in_bands(stored: Stored, n: int, epsilons: Sequence[float]) -> list[RateInBand]:
    """A detector's false detection rate at each epsilon, from the first run of n draws."""
    first = stored.id_set.score_vectors[:, :n]
    return [rate_in_band(stored.calibration, first, n, epsilon) for epsilon in epsilons]


def rate_in_band(
    calibration: Calibration, id_vectors: NDArray[np.floating], n: int, epsilon: float
) -> RateInBand:
    """The share of iD test points that is flagged, over all runs of n draws, beside the band of one run."""
    rate = flagged_share(calibration, id_vectors, n, epsilon)
    return RateInBand(epsilon, rate, *observed_band(calibration.k, epsilon, len(id_vectors)))
