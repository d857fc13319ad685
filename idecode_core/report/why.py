"""Why a draw scores what it scores: its summands, which add up to the number shown, in words a newcomer understands."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from idecode_core.merged import MergedScorer
from idecode_core.ncm import ERROR, UNFAMILIAR, UNKNOWN
from idecode_core.scorer import Inspected, Scorer, Variant

MEANS = {  # base NCM -> what its error is
    "parameter_error": "squared distance between the transform that was applied and the one the model answered",
    "log_parameter_error": "logarithm of the squared distance between the transform that was applied and the model's answer; "
    "below 0 when it is close",
    "cross_entropy": "how little the model believed in the right answer, -log of its share; 0 when it was sure of it",
    "invariance": "how far the model's answer moved away from its answer for the untouched input",
    "kl_divergence": "how far the model's answer moved away from its answer for the untouched input",
    "argmax_disagreement": "1 when the model names another class than for the untouched input, else 0",
    "soft_disagreement": "how often the model would name another class than for the untouched input",
    "label_cross_entropy": "how little the model still believes in the class of the untouched input, -log of its share",
    "cross_entropy_and_familiarity": "how little the model believed in the right answer, -log of its share; 0 when it was "
    "sure of it",
    "turn_and_label": "how little the model believed in the right turn, a fifth of -log of its share; 0 when it was sure of it",
    "turn_and_mirrored_label": "how little the model believed in the right turn, a fifth of -log of its share; 0 when it was sure "
    "of it",
    "label_logit_and_familiarity": "how little speaks for the class of the untouched input; below 0 when much does",
}
EVIDENCE = (
    "how little speaks for any of the classes that the model knows in the untouched input, the same in every draw; below 0 when "
    "much does"
)
FAMILIARITY = (
    "how little the model finds of what it has learned to look for; below 0 when it finds much. A right answer can still "
    "look unfamiliar"
)


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
    error = MEANS.get(str(getattr(scorer, "base_ncm", "")), "")
    words = {ERROR: error, UNKNOWN: EVIDENCE, UNFAMILIAR: FAMILIARITY}
    return tuple(Part(term.name, term.value, words.get(term.name, "")) for term in terms)


def member_words(name: str, value: float, weight: float, variants: Sequence[Variant]) -> str:
    """What a member of a merged detector adds: weight * -log(share of its reference draws at least as strange).

    >>> member_words("rotations", 2 * math.log(4), 2.0, [])
    '25 % of its reference draws are at least as strange: 2 x -log(0.25) = 2.77'
    """
    if weight == 0:
        return "counts nothing: its weight is 0"
    share = math.exp(-value / weight)
    own = [variant.score for variant in variants if variant.member == name]
    scores = f"it scores {sum(own) / len(own):.3g}{_mean_of(len(own))}; " if own else ""
    return (
        f"{scores}{100 * share:.3g} % of its reference draws are at least as strange: "
        f"{weight:g} x -log({share:.3g}) = {value:.3g}"
    )


def _mean_of(count: int) -> str:
    return f" (the mean of its {count} variants)" if count > 1 else ""


def sum_in_words(found: Sequence[Part], total: float, variants: int, *, merged: bool = False) -> str:
    """How the parts make the number shown, and how several variants make one draw.

    >>> sum_in_words([Part("a", 2.0, ""), Part("b", -0.5, "")], 1.5, 4)
    '2 - 0.5 = 1.5. Each part is the mean over the 4 variants of this draw.'
    """
    first, *rest = found
    text = f"{first.value:.3g}" + "".join(
        f" {'-' if part.value < 0 else '+'} {abs(part.value):.3g}" for part in rest
    )
    equation = f"{text} = {total:.3g}. " if rest else ""
    if variants == 1 or merged:
        return equation.strip()
    each = "Each part" if rest else "The draw's score"
    return f"{equation}{each} is the mean over the {variants} variants of this draw."
