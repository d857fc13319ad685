"""What the Attack lab shows of one picture, as a report and as a notebook that attacks and judges it again."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idecode_core.report.attack_words import CHOSEN, explanation, headline, outcome_of
from idecode_core.report.content import Figure, Picture, Report, Row, Value
from idecode_core.report.judged import Judged, verdict_row
from idecode_core.report.notebook import Cell, Code, Text, opening, to_notebook
from idecode_core.report.sources import arrays_cell
from idecode_core.report.steps import same_verdicts

if TYPE_CHECKING:
    # These are slow to import, and pages import this file.
    from idecode_core.attacks import Attacked
    from idecode_core.conformal.judge import Verdict


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
        return tuple(one for one in (self.chosen, *self.others) if one.attacked.strength > 0)


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
        rows=tuple(_row(one) for one in (shown.clean, *shown.attempts)),
        figures=figures,
    )


def _row(one: Attempt) -> Row:
    outcome = outcome_of(one.attacked, one.verdict, one.verdict)
    attack = one.attacked.name if one.attacked.strength > 0 else "none"
    return {
        "picture": Picture(one.thumbnail, attack),
        "attack": attack,
        "strength": one.attacked.strength,
        "shows": outcome.truth,
        "victim_says": outcome.after.label,
        "victim_share": outcome.after.share,
        "fooled": outcome.is_fooled,
        "l2": float(one.attacked.l2[0]),
        "linf": float(one.attacked.linf[0]),
        **verdict_row(one.verdict, tuple(one.score_vector.tolist()), one.content_hash),
    }


def attack_notebook(shown: AttackShown) -> str:
    """The notebook file: it holds the pictures as floats, attacks again, and asserts the numbers of the screen."""
    cells: list[Cell] = [
        *opening(
            f"{shown.picture} under attack",
            "This notebook computes again what the Attack lab showed. The pictures are inside it, victim and detector come from "
            "the repository.",
        ),
        Text(
            "## Detector and victim\n\nThe hashes make sure that they are those of the page, weights and calibration."
        ),
        shown.detector_cell(),
        Code(
            f"""\
from idecode_core.attacks import Victim, attack, attack_detector

victims_home = load_detector({shown.victim!r})
assert scorer_hash(victims_home.scorer) == {shown.victim_sha256!r}, "other weights or settings"
victim = Victim.from_detector(victims_home)"""
        ),
        Text(
            "## The pictures\n\nThe clean one and those of the page after each attack, as floats in [0, 1]: an attack's changes "
            "are finer than 8 bits."
        ),
        Code(
            arrays_cell(
                {
                    "clean": shown.clean.attacked.clean.numpy(),
                    "attacked": np.stack([one.attacked.attacked.numpy() for one in shown.attempts])
                    if shown.attempts
                    else np.empty((0, *shown.clean.attacked.clean.shape), np.float32),
                }
            )
        ),
    ]
    if shown.attempts:
        cells += [
            Text(
                "## Attack again\n\nAttacks follow gradients in many steps, and float noise of other processors grows with each "
                "of them. So the pictures may differ a little; whether the victim is fooled, and the length of the change "
                "up to 5 %, must not."
            ),
            Code(_attack_cell(shown)),
        ]
    cells += [
        Text("## Algorithm 1, on the pictures of the page"),
        shown.judge_cell(
            "Unrounded(together.transpose(0, 2, 3, 1))",
            """\
for verdict in judgement:
    print(f"p = {verdict.p_value:.3g}, {verdict.answer}")""",
            smoothed_by="smoothing_generator(content_hash(picture), seed) for picture in pictures",
            imports=("\nfrom idecode_core.draws import content_hash" if shown.smoothed else "")
            + "\nfrom idecode_core.image.unrounded import Unrounded",
            first="""
together = np.concatenate([arrays["clean"], *arrays["attacked"]])  # (1 + attacks, 3, h, w)
pictures = list(Unrounded(together.transpose(0, 2, 3, 1)).pictures())""",
        ),
        *same_verdicts([one.verdict for one in (shown.clean, *shown.attempts)], _same_answers(shown)),
    ]
    return to_notebook(cells)


def _attack_cell(shown: AttackShown) -> str:
    runs = [(one.attacked.name, one.attacked.strength) for one in shown.attempts]
    label = int(shown.clean.attacked.labels[0])
    return f"""\
runs = {runs!r}  # attack and strength
again = [
    attack_detector(victim, detector, arrays["clean"], [{label}], strength=strength, seed={shown.seed})
    if name == "pgd-detector"
    else attack(victim, arrays["clean"], [{label}], name, strength)
    for name, strength in runs
]
for found in again:
    print(found.summary())

shown_fooled = {[bool(one.attacked.success[0]) for one in shown.attempts]!r}
shown_l2 = {[float(one.attacked.l2[0]) for one in shown.attempts]!r}
assert [bool(found.success[0]) for found in again] == shown_fooled
np.testing.assert_allclose([found.l2[0] for found in again], shown_l2, rtol=0.05, atol=1e-3)"""


def _same_answers(shown: AttackShown) -> str:
    says = [int(one.attacked.after[0].argmax()) for one in (shown.clean, *shown.attempts)]
    return f"""\
import torch

assert victim.says(torch.from_numpy(together)).argmax(1).tolist() == {says!r}  # classes on the page"""
