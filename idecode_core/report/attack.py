"""What the Attack lab shows of one picture, as a report and as a notebook that attacks and judges it again.

An attack's outcome in words: the sentence first, then what it means and what it does not.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from idecode_core.report.content import Figure, Judged, Picture, Report, Row, Value, command, verdict_row
from idecode_core.report.notebook import Notebook, from_template
from idecode_core.verdict import meaning, sentence

if TYPE_CHECKING:
    from idecode_core.attacks import Attacked
    from idecode_core.conformal.judge import Verdict


CHOSEN = (
    "the guarantee is about images that come as those of the calibration set came; it says nothing about inputs that somebody "
    "chose"
)
"""What every outcome of an attack has to be read with."""


@dataclass(frozen=True)
class FirstChoice:
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
    before: FirstChoice
    after: FirstChoice
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
        answer(attacked.classes, attacked.before[0]),
        answer(attacked.classes, attacked.after[0]),
        attacked.strength,
        bool(attacked.linf[0] > 0),
        clean,
        after,
    )


def shares(logits: Any) -> NDArray[np.float64]:
    """What share the victim gives each class, (classes,)."""
    return np.asarray(softmax(np.asarray(logits, np.float64)))


def answer(classes: tuple[str, ...], logits: Any) -> FirstChoice:
    first = int(shares(logits).argmax())
    return FirstChoice(classes[first], float(shares(logits)[first]))


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


@dataclass(frozen=True, eq=False)
class Attempt:
    """One picture after one attack, as the victim and the detector see it."""

    attacked: "Attacked"  # a batch of one
    score_vector: NDArray[np.float64]  # (n,): V of the attacked picture
    verdict: "Verdict"
    content_hash: str
    thumbnail: bytes
    """A PNG for the HTML report; rounded, as eyes need no more."""


@dataclass(frozen=True, eq=False)
class AttackShown(Judged):
    """The page as it is on the screen, with everything that is needed to compute it again."""

    picture: str
    victim: str
    """As the detector, by the name of its folder."""
    victim_sha256: str
    title: str
    """The attack's."""
    clean: Attempt
    """Strength 0: nothing was changed."""
    chosen: Attempt
    others: tuple[Attempt, ...] = ()
    """Further attacks of the same picture that are on the screen: along the strength, and on the detector itself."""

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """All that changed something, the chosen one first."""
        return tuple(attempt for attempt in (self.chosen, *self.others) if attempt.attacked.strength > 0)


def attack_report(shown: AttackShown, figures: tuple[Figure, ...] = ()) -> Report:
    """The sentence of the page, then one row per attack of the picture, the clean one first."""
    outcome = outcome_of(shown.chosen.attacked, shown.clean.verdict, shown.chosen.verdict)
    answer, reason = headline(outcome)
    means, does_not = explanation(outcome)
    settings: dict[str, Value] = {
        "picture": shown.picture,
        "victim": shown.victim,
        "victim_sha256": shown.victim_sha256,
        "attack": shown.chosen.attacked.name,
        "strength": shown.chosen.attacked.strength,
        **shown.settings(shown.clean.verdict.k),
    }
    return Report(
        title=f"{shown.picture}: {shown.title} on {shown.victim}, judged by {shown.detector}",
        sentences=(
            f"{answer}: {reason}",
            f"It means: {means}",
            f"It does not mean: {does_not}",
            f"{CHOSEN[0].upper()}{CHOSEN[1:]}.",
            "L2 is the length of the change and Linf its largest part, with pixel values from 0 to 1. An attack counts where "
            "the clean picture was classified right and the attacked one is wrong.",
        ),
        settings=settings,
        rows=tuple(_row(attempt) for attempt in (shown.clean, *shown.attempts)),
        figures=figures,
        commands=tuple(
            command(
                "attack",
                shown.picture,
                **{
                    "--victim": shown.victim,
                    "--attack": attempt.attacked.name,
                    "--strength": attempt.attacked.strength,
                    "--out": f"attacked-{i}",
                },
            )
            for i, attempt in enumerate(shown.attempts, start=1)
            if attempt.attacked.name != "pgd-detector"
        ),
    )


def _row(attempt: Attempt) -> Row:
    outcome = outcome_of(attempt.attacked, attempt.verdict, attempt.verdict)
    attack = attempt.attacked.name if attempt.attacked.strength > 0 else "none"
    return {
        "picture": Picture(attempt.thumbnail, attack),
        "attack": attack,
        "strength": attempt.attacked.strength,
        "shows": outcome.truth,
        "victim_says": outcome.after.label,
        "victim_share": outcome.after.share,
        "fooled": outcome.is_fooled,
        "l2": float(attempt.attacked.l2[0]),
        "linf": float(attempt.attacked.linf[0]),
        **verdict_row(attempt.verdict, tuple(attempt.score_vector.tolist()), attempt.content_hash),
    }


def attack_notebook(shown: AttackShown) -> Notebook:
    """The pictures lie beside it as floats; it attacks again, and asserts the numbers of the screen."""
    everything, clean = (shown.clean, *shown.attempts), shown.clean.attacked
    attacked = [attempt.attacked.attacked.numpy() for attempt in shown.attempts]
    return from_template(
        "attack",
        f"{shown.picture} under attack",
        {
            "arrays": "attack.npz",
            **shown.given(),
            "victim": shown.victim,
            "victim_sha256": shown.victim_sha256,
            "label": int(clean.labels[0]),
            "attack": shown.chosen.attacked.name,
            "strength": shown.chosen.attacked.strength,
            "attacks": [[attempt.attacked.name, attempt.attacked.strength] for attempt in shown.attempts],
        },
        {
            "fooled": [bool(attempt.attacked.success[0]) for attempt in shown.attempts],
            "l2": [float(attempt.attacked.l2[0]) for attempt in shown.attempts],
            "victim_says": [int(attempt.attacked.after[0].argmax()) for attempt in everything],
            "scores": [attempt.verdict.score for attempt in everything],
            "p_values": [attempt.verdict.p_value for attempt in everything],
        },
        arrays={
            "clean": clean.clean.numpy(),
            "attacked": np.stack(attacked) if attacked else np.empty((0, *clean.clean.shape), np.float32),
        },
        attacked=bool(attacked),
        along=sum(attempt.attacked.name == shown.chosen.attacked.name for attempt in shown.attempts) > 1,
    )
