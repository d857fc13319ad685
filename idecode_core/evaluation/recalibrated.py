"""What calibrating again costs: it repairs false alarms, not detection.

Files that are strange to the model have large scores. As a calibration set they raise the threshold for everything, so
that what the parent caught may pass. The model has learned nothing about what belongs now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from idecode_core.conformal import FloatArray, flagging_rank, k_needed
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge


@dataclass(frozen=True)
class Catch:
    """How many points of one set were flagged by the parent, and are flagged by the new detector."""

    label: str
    total: int
    before: int
    after: int


@dataclass(frozen=True)
class Lost:
    """What a new calibration costs, over all sets."""

    epsilon: float
    k: int
    catches: tuple[Catch, ...]

    @property
    def before(self) -> float:
        """The share that the parent catches."""
        return self._share([catch.before for catch in self.catches])

    @property
    def after(self) -> float:
        """The share that the new detector catches."""
        return self._share([catch.after for catch in self.catches])

    def _share(self, flagged: Sequence[int]) -> float:
        return sum(flagged) / max(sum(catch.total for catch in self.catches), 1)

    @property
    def blind(self) -> bool:
        """Hardly more is caught than is flagged of what belongs."""
        return bool(self.catches) and self.after <= 2 * self.epsilon

    def reading(self) -> str:
        """One or two sentences."""
        shares = f"{self.after:.0%} of these samples, the parent {self.before:.0%}"
        if flagging_rank(self.k, self.epsilon) == 0:
            return (
                f"It cannot flag anything: with {self.k:,} calibration points epsilon = {self.epsilon:g} is too small. "
                f"Bring {k_needed(self.epsilon):,} files or more, or allow a larger epsilon."
            )
        if self.blind:
            was = (
                "The parent was no better."
                if self.before <= 2 * self.epsilon
                else "What you brought is strange to this model."
            )
            return (
                f"This detector is blind: it catches {shares}, and of what belongs it may flag {self.epsilon:.0%}. {was} "
                "Train a detector on your own files instead."
            )
        if self.after < self.before / 2:
            return f"More than half of the detection is lost: it catches {shares}."
        return f"It still detects: it catches {shares}."


def what_is_lost(
    parent: Calibration,
    own: Calibration,
    score_vectors: Mapping[str, FloatArray],
    *,
    n: int,
    epsilon: float,
    aggregate: str = "sum",
) -> Lost:
    """How many of each set, label -> V (batch, at least n), are flagged under the parent's calibration and under the new one."""
    catches = []
    for label, vectors in score_vectors.items():
        before, after = (
            int(judge(calibration, vectors, n=n, epsilon=epsilon, aggregate=aggregate).is_ood.sum())
            for calibration in (parent, own)
        )
        catches.append(Catch(label, len(vectors), before, after))
    return Lost(epsilon, own.k, tuple(catches))
