"""The law of the false detection rate: what one calibration set of size k does, over all such sets, and what is seen of it
on a number of test points. Exact for scores without ties; ties only lower the rate."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from idecode_core.conformal.ranking import FloatArray, check_epsilon, check_k, flagging_rank
from idecode_core.errors import SettingError


@dataclass(frozen=True)
class FalseDetectionLaw:
    """How the true false detection rate varies from one calibration set of size k to the next.

    For continuous scores, the chance that a new iD point lies above the J-th largest of k calibration scores is
    Beta(J, k+1-J) distributed over calibration sets (Vovk 2012, "Conditional validity of inductive conformal
    predictors"). Its mean is J/(k+1) <= epsilon, so single calibration sets do exceed epsilon. Ties only lower
    the rate.

    >>> law = FalseDetectionLaw(k=1000, epsilon=0.05)
    >>> law.J, round(law.mean, 4), [round(rate, 3) for rate in law.interval(0.9)]
    (50, 0.05, [0.039, 0.062])
    """

    k: int
    epsilon: float

    def __post_init__(self) -> None:
        check_k(self.k)
        check_epsilon(self.epsilon)

    @property
    def J(self) -> int:
        """The number of p-value levels 1/(k+1), ..., J/(k+1) that lie below epsilon."""
        return flagging_rank(self.k, self.epsilon)

    @property
    def mean(self) -> float:
        """J/(k+1): the false detection rate averaged over calibration sets."""
        return self.J / (self.k + 1)

    def quantile(self, q: float) -> float:
        """The rate that a share q of all calibration sets stays below; 0 when J = 0."""
        if not 0.0 <= q <= 1.0:
            raise SettingError(f"q must lie between 0 and 1, got {q}.")
        if self.J == 0:
            return 0.0
        return float(scipy.stats.beta.ppf(q, self.J, self.k + 1 - self.J))

    def interval(self, level: float) -> tuple[float, float]:
        """The central interval that holds the rate for a share `level` of all calibration sets."""
        if not 0.0 < level < 1.0:
            raise SettingError(
                f"level must lie strictly between 0 and 1, got {level}. A usual choice is 0.9."
            )
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)


def law_bands(k: int, epsilons: ArrayLike, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
    """`FalseDetectionLaw(k, epsilon).interval(level)` for many epsilons at once: lower and upper ends.

    >>> low, high = law_bands(1000, [0.0001, 0.05])
    >>> low.round(3), high.round(3)
    (array([0.   , 0.039]), array([0.   , 0.062]))
    """
    j = np.array([flagging_rank(k, float(epsilon)) for epsilon in np.asarray(epsilons)])
    law = scipy.stats.beta(np.maximum(j, 1), k + 1 - np.maximum(j, 1))
    low, high = (np.where(j > 0, law.ppf(q), 0.0) for q in ((1 - level) / 2, (1 + level) / 2))
    return low, high


def exceeding_share(law: FalseDetectionLaw) -> float:
    """The share of all calibration sets of this size whose true rate lies above epsilon, by the exact law.

    >>> round(exceeding_share(FalseDetectionLaw(k=1000, epsilon=0.05)), 2)
    0.48
    """
    if law.J == 0:
        return 0.0
    return float(scipy.stats.beta.sf(law.epsilon, law.J, law.k + 1 - law.J))


def observed_band(k: int, epsilon: float, points: int, level: float = 0.99) -> tuple[float, float]:
    """Where the rate seen on `points` test points lies with probability `level`: BetaBinomial(points, J, k+1-J).

    The calibration set decides the true rate, Beta(J, k+1-J); the test points are then drawn. Exact without ties.

    >>> [round(rate, 3) for rate in observed_band(k=5000, epsilon=0.05, points=2500)]
    [0.037, 0.064]
    """
    law = FalseDetectionLaw(k, epsilon)
    if law.J == 0:
        return 0.0, 0.0
    counts = scipy.stats.betabinom(points, law.J, k + 1 - law.J)
    return float(counts.ppf((1 - level) / 2)) / points, float(counts.ppf((1 + level) / 2)) / points
