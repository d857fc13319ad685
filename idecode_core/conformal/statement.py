"""The guarantee in plain words, with its numbers: what is promised, on what conditions, and what is not."""

import math
import warnings
from dataclasses import dataclass

from idecode_core.conformal import FalseDetectionLaw, exceeding_share, flagging_rank, k_needed
from idecode_core.conformal.conditional import corrected_epsilon, k_needed_for_corrected_epsilon
from idecode_core.conformal.observed import PREDICTED, ObservedRate, predictive_bands
from idecode_core.errors import NothingFlaggedWarning
from idecode_core.files.shown import Shown

ASSUMPTIONS = (
    "The input comes from the same source as the k calibration inputs, in no particular order: exchangeable with them.",
    "No calibration input was used to train the model.",
    "Every input, calibration or new, gets its own random transforms and the same preprocessing.",
    "n, the aggregate and epsilon were chosen without looking at the calibration scores.",
)
NOT_GUARANTEED = (
    "How many strange inputs are caught. That depends on the model; see Evaluate.",
    "The rate of one particular calibration set. It varies around the average; the correction on this page bounds it.",
    "The share of flagged inputs that are false alarms. If nearly all inputs belong, most flags are false alarms.",
    "Anything for inputs that have drifted, or that somebody chose to fool the detector.",
)


@dataclass(frozen=True)
class Guarantee(Shown):
    """What is guaranteed at epsilon with k calibration points."""

    k: int
    epsilon: float
    delta: float = 0.1
    """For the correction: the share of calibration sets that may break the stricter guarantee."""

    @property
    def law(self) -> FalseDetectionLaw:
        return FalseDetectionLaw(self.k, self.epsilon)

    @property
    def can_flag(self) -> bool:
        return self.law.J > 0

    def statement(self) -> str:
        """Theorem 1 and Corollary 1, exactly."""
        if not self.can_flag:
            return (
                f"With k = {self.k:,} calibration inputs and epsilon = {self.epsilon:g} nothing can ever be flagged: the smallest "
                f"possible p-value is 1/{self.k + 1:,}. Choose a larger epsilon, or calibrate with at least "
                f"{k_needed(self.epsilon):,} inputs."
            )
        return (
            f"An input that belongs is flagged with probability at most {self.epsilon:g}; "
            f"exactly {self.law.J:,}/{self.k + 1:,} = {self.law.mean:.4g} when scores do not tie. The probability is over "
            "everything random: which k inputs were taken for calibration, the new input, and the transforms."
        )

    def one_set(self) -> str:
        """What may happen with the one calibration set that a user has."""
        if not self.can_flag:
            return "With this k and epsilon every calibration set gives a rate of 0."
        low, high = self.law.interval(0.9)
        return (
            f"The average is over calibration sets. Yours is one of them: nine in ten sets of {self.k:,} have a true rate "
            f"between {low:.2%} and {high:.2%}, and {exceeding_share(self.law):.0%} of all sets lie above epsilon."
        )

    def chance(self, observed: ObservedRate) -> str:
        """Whether what was seen on a test set is chance: held against the band for this k and this number of points."""
        (low,), (high,) = predictive_bands(self.k, [self.epsilon], observed.total)
        above = observed.rate > self.epsilon
        text = (
            f"That is {'above' if above else 'not above'} epsilon = {self.epsilon:g}. Calibration sets of {self.k:,} together "
            f"with test sets of {observed.total:,} show between {low:.2%} and {high:.2%} in {PREDICTED:.0%} of cases, "
        )
        if observed.rate > high:
            return (
                text
                + "so chance does not explain it at that level: these test inputs seem stranger than the calibration "
                "inputs. Calibrate again on inputs from the same source."
            )
        if observed.rate < low:
            return (
                text
                + "so it is lower than chance explains at that level: these test inputs seem more ordinary than the "
                "calibration inputs, or many scores tie."
            )
        return (
            text
            + "so this is chance at that level"
            + (
                ": the promise is for the average over calibration sets, and this one flags more."
                if above
                else "."
            )
        )

    @property
    def corrected(self) -> float | None:
        """The epsilon to use so that a share 1 - delta of all calibration sets keeps the rate; None when there is none.

        With as few digits as flag the same p-values, so that it can be read, typed and put into a link.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingFlaggedWarning)
            exact = corrected_epsilon(self.k, self.epsilon, self.delta)
        rank = flagging_rank(self.k, exact)
        return shortened(exact, self.k, rank) if rank > 0 else None

    def kept_rate(self) -> str:
        """What this epsilon itself promises of one calibration set."""
        rate = self.law.quantile(1 - self.delta)
        return (
            f"With epsilon = {self.epsilon:g}, {1 - self.delta:.0%} of all calibration sets of {self.k:,} keep a true rate of at "
            f"most {rate:.2%}."
        )

    def correction(self) -> str:
        """The calibration-conditional correction (Vovk 2012), as advice."""
        sure = f"{1 - self.delta:.0%}"
        if self.corrected is None:
            return (
                f"To be {sure} sure that your own calibration set keeps the rate below {self.epsilon:g}, at least "
                f"k = {k_needed_for_corrected_epsilon(self.epsilon, self.delta):,} calibration inputs are needed."
            )
        return (
            f"To be {sure} sure that your own calibration set keeps the rate below {self.epsilon:g}, "
            f"set epsilon to {self.corrected:g}."
        )

    @property
    def k_needed(self) -> int:
        """The fewest calibration inputs with which anything can be flagged at this epsilon."""
        return k_needed(self.epsilon)

    @property
    def k_needed_when_sure(self) -> int:
        """The same for the corrected guarantee."""
        return k_needed_for_corrected_epsilon(self.epsilon, self.delta)


def shortened(epsilon: float, k: int, rank: int) -> float:
    """The shortest decimal number of at least three digits, not above epsilon, that flags the same `rank` p-values.

    >>> shortened(0.0461907618, 5000, 230)
    0.0461
    """
    for digits in range(3, 16):
        scale = 10.0 ** (digits - 1 - math.floor(math.log10(epsilon)))
        candidate = math.floor(epsilon * scale) / scale
        if flagging_rank(k, candidate) == rank:
            return candidate
    return epsilon
