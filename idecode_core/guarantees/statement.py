"""The guarantee in plain words, with its numbers: what is promised, on what conditions, and what is not."""

import warnings
from dataclasses import dataclass

from idecode_core.conformal import FalseDetectionLaw, exceeding_share, k_needed
from idecode_core.errors import NothingFlaggedWarning
from idecode_core.guarantees import corrected_epsilon, k_needed_for_corrected_epsilon

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
class Guarantee:
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

    @property
    def corrected(self) -> float | None:
        """The epsilon to use so that a share 1 - delta of all calibration sets keeps the rate; None when there is none."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingFlaggedWarning)
            epsilon = corrected_epsilon(self.k, self.epsilon, self.delta)
        return epsilon if FalseDetectionLaw(self.k, epsilon).J > 0 else None

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
            f"set epsilon to {self.corrected:.4g}."
        )

    @property
    def k_needed(self) -> int:
        """The fewest calibration inputs with which anything can be flagged at this epsilon."""
        return k_needed(self.epsilon)

    @property
    def k_needed_when_sure(self) -> int:
        """The same for the corrected guarantee."""
        return k_needed_for_corrected_epsilon(self.epsilon, self.delta)
