"""Why a draw scores what it scores: its summands, which add up to the number shown, in words a newcomer understands."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from idecode_core.ncm import BASE_NCMS
from idecode_core.scorer import Inspected, Scorer, Variant
from idecode_core.scorers.merged import MergedScorer


@dataclass(frozen=True)
class Part:
    """One summand of a draw's score."""

    name: str
    value: float
    words: str


def parts(scorer: Scorer, inspected: Inspected, draw: int) -> tuple[Part, ...]:
    """The summands of one draw's score; their sum is `inspected.score_vector[draw]`."""
    terms = inspected.terms[draw]
    if isinstance(scorer, MergedScorer):
        variants = [variant for variant in inspected.variants if variant.draw == draw]
        return tuple(
            Part(
                f"{term.name}, weight {weight:g}",
                term.value,
                member_words(term.name, term.value, weight, variants),
            )
            for term, weight in zip(terms, scorer.weights, strict=True)
        )
    ncm = getattr(scorer, "user_ncm", None) or BASE_NCMS.get(getattr(scorer, "base_ncm", ""))
    words = ncm.words() if ncm is not None else {}
    other = getattr(scorer, "summary", "") or "the larger, the stranger"
    return tuple(Part(term.name, term.value, words.get(term.name, other)) for term in terms)


def member_words(name: str, value: float, weight: float, variants: Sequence[Variant]) -> str:
    """What a member of a merged detector adds: weight * -log(share of its reference draws at least as strange).

    >>> member_words("rotations", 2 * math.log(4), 2.0, [])
    '25 % of its reference draws are at least as strange: 2 x -log(0.25) = 2.77'
    """
    if weight == 0:
        return "counts nothing: its weight is 0"
    share = math.exp(-value / weight)
    seen = [variant.score for variant in variants if variant.member == name]
    mean_of = f" (the mean of its {len(seen)} variants)" if len(seen) > 1 else ""
    scores = f"it scores {sum(seen) / len(seen):.3g}{mean_of}; " if seen else ""
    return (
        f"{scores}{100 * share:.3g} % of its reference draws are at least as strange: "
        f"{weight:g} x -log({share:.3g}) = {value:.3g}"
    )


def sum_in_words(summands: Sequence[Part], total: float, variants: int, *, merged: bool = False) -> str:
    """How the parts make the number shown, and how several variants make one draw.

    >>> sum_in_words([Part("a", 2.0, ""), Part("b", -0.5, "")], 1.5, 4)
    '2 - 0.5 = 1.5. Each part is the mean over the 4 variants of this draw.'
    """
    first, *others = summands
    text = f"{first.value:.3g}" + "".join(
        f" {'-' if part.value < 0 else '+'} {abs(part.value):.3g}" for part in others
    )
    equation = f"{text} = {total:.3g}. " if others else ""
    if variants == 1 or merged:
        return equation.strip()
    subject = "Each part" if others else "The draw's score"
    return f"{equation}{subject} is the mean over the {variants} variants of this draw."
