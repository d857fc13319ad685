"""An attack's outcome in words: the sentence first, then what it means and what it does not."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.verdict import meaning, sentence

if TYPE_CHECKING:
    # These are slow to import, and pages import this file.
    from idecode_core.attacks import Attacked
    from idecode_core.conformal.judge import Verdict

CHOSEN = (
    "the guarantee is about images that come as those of the calibration set came; it says nothing about inputs that somebody "
    "chose"
)
"""What every outcome of an attack has to be read with."""


@dataclass(frozen=True)
class Answer:
    """The victim's first choice."""

    label: str
    share: float

    def __str__(self) -> str:
        return f"{self.label} ({percent(self.share)})"


def percent(share: float) -> str:
    """A share in percent; one that rounds to everything or nothing keeps its distance from it.

    >>> percent(0.973), percent(0.99997), percent(0.0002)
    ('97 %', 'more than 99 %', 'less than 1 %')
    """
    if share > 0.995:
        return "more than 99 %"
    return "less than 1 %" if share < 0.005 else f"{100 * share:.0f} %"


@dataclass(frozen=True)
class Outcome:
    """What an attack did to the victim, and what the detector says before and after."""

    truth: str
    before: Answer
    after: Answer
    strength: float
    is_changed: bool
    """False where the attack found nothing and left the picture as it was."""
    clean: "Verdict"
    attacked: "Verdict"

    @property
    def is_right_before(self) -> bool:
        return self.before.label == self.truth

    @property
    def is_fooled(self) -> bool:
        """A sample counts when the clean picture was right and the attacked one is wrong."""
        return self.is_right_before and self.after.label != self.truth


def outcome_of(attacked: "Attacked", clean: "Verdict", after: "Verdict") -> Outcome:
    """Of an attack on one picture, a batch of one."""
    return Outcome(
        attacked.classes[int(attacked.labels[0])],
        answer(attacked.classes, shares(attacked.before[0])),
        answer(attacked.classes, shares(attacked.after[0])),
        attacked.strength,
        bool(attacked.linf[0] > 0),
        clean,
        after,
    )


def shares(logits: Any) -> NDArray[np.float64]:
    """Softmax: what share the victim gives each class, (classes,)."""
    exponents = np.asarray(logits, np.float64)
    powers = np.exp(exponents - exponents.max())
    return np.asarray(powers / powers.sum(), np.float64)


def answer(classes: tuple[str, ...], found: NDArray[np.float64]) -> Answer:
    first = int(found.argmax())
    return Answer(classes[first], float(found[first]))


def headline(outcome: Outcome) -> tuple[str, str]:
    """The answer in a few words, and its reason."""
    if not outcome.is_right_before:
        return (
            "Nothing to attack",
            f"the victim takes this {outcome.truth} for {article(outcome.before.label)} already "
            f"({percent(outcome.before.share)}), without any attack. Choose another picture, or another victim.",
        )
    if outcome.strength == 0:
        return "Nothing was changed", "at strength 0 the attacked picture is the clean one."
    if not outcome.is_changed:
        return (
            "The attack failed",
            f"within its steps it found no change that fools the victim, which still says {outcome.before}. Try another "
            "strength.",
        )
    if not outcome.is_fooled:
        return (
            "The attack failed",
            f"the victim still says {outcome.after}. Try more strength. The detector: {_numbers(outcome.attacked)}",
        )
    fooled = f"the victim says {outcome.after} in place of {outcome.truth}, and {_numbers(outcome.attacked)}"
    if not outcome.attacked.is_ood:
        return "Fooled and not noticed", fooled
    if outcome.clean.is_ood:
        return "Fooled and flagged, but so was the clean picture", fooled
    return "Fooled and flagged", fooled


def explanation(outcome: Outcome) -> tuple[str, str]:
    """What it means, and what it does not: two ends of a sentence."""
    if not outcome.is_right_before or outcome.strength == 0:
        return (
            "an attack counts only where the clean picture is classified right and the attacked one is wrong. What is judged here "
            "is the clean picture.",
            "anything about attacks: nothing was attacked.",
        )
    if not outcome.is_fooled:
        return (
            "this victim holds out here, against this attack at this strength.",
            "that the victim is safe: another attack, or more strength, may well succeed.",
        )
    means, _ = meaning(outcome.attacked)
    if not outcome.attacked.is_ood:
        return means, f"that a promise was broken: {CHOSEN}."
    if outcome.clean.is_ood:
        return (
            "the detector finds the picture strange with and without the attack, so the flag tells nothing about the attack.",
            f"that the attack was noticed; {CHOSEN}.",
        )
    return means, f"that attacks are always noticed: {CHOSEN}."


def _numbers(verdict: "Verdict") -> str:
    """The verdict's reason: "only 3 of 5,000 calibration images were at least this strange (p = ...)"."""
    return sentence(verdict).partition(": ")[2]


def article(noun: str) -> str:
    """
    >>> article("airplane"), article("truck")
    ('an airplane', 'a truck')
    """
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
