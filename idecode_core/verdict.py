"""A verdict in words: the sentence first, the numbers second; what it means, and what it does not."""

from idecode_core.conformal import flagging_rank
from idecode_core.conformal.judge import Verdict


def sentence(verdict: Verdict, noun: str = "image") -> str:
    """The verdict in words first, in numbers second."""
    k = f"{verdict.k:,}"
    if verdict.rank == 0:
        strange = f"none of the {k} calibration {noun}s was this strange"
    elif verdict.rank == verdict.k:
        strange = f"all {k} calibration {noun}s were at least this strange"
    else:
        only = "only " if verdict.is_ood else ""
        were = "was" if verdict.rank == 1 else "were"
        strange = f"{only}{verdict.rank:,} of {k} calibration {noun}s {were} at least this strange"
    if verdict.batch > 1:
        numbers = f"p = {verdict.p_value:.3g}, among {verdict.batch} files with false discoveries kept to {verdict.epsilon:g}"
    else:
        numbers = comparison(verdict.p_value, verdict.epsilon)
    return f"{verdict.answer.capitalize()}: {strange} ({numbers})."


def comparison(p: float, epsilon: float) -> str:
    """ "p = 0.004 < epsilon = 0.05", with as many digits as it takes to tell the two apart."""
    digits = 3
    while digits < 17 and p != epsilon and f"{p:.{digits}g}" == f"{epsilon:.{digits}g}":
        digits += 1
    return f"p = {p:.{digits}g} {'<' if p < epsilon else '≥'} epsilon = {epsilon:g}"


def meaning(verdict: Verdict, noun: str = "image") -> tuple[str, str]:
    """What the verdict means, and what it does not: two ends of a sentence."""
    if flagging_rank(verdict.k, verdict.epsilon) == 0:
        smallest = 1 / (verdict.k + 1)
        return (
            f"with {verdict.k:,} calibration {noun}s nothing can ever be flagged at epsilon = {verdict.epsilon:g}: the "
            f"smallest possible p-value is {smallest:.3g}.",
            f"that the {noun} belongs. Choose a larger epsilon.",
        )
    if verdict.is_ood:
        return (
            f"{noun}s like those of the calibration set come out this strange in at most {100 * verdict.p_value:.3g} % of "
            f"cases; with epsilon = {verdict.epsilon:g}, at most {100 * verdict.epsilon:g} % of them are flagged, on average.",
            f"that the {noun} belongs with probability {verdict.p_value:.3g}; nor does it say what is strange about it.",
        )
    return (
        f"among {noun}s like those of the calibration set this one does not stand out: {100 * verdict.p_value:.3g} % of them are "
        "at least as strange.",
        f"that the {noun} belongs: the detector may be blind to what is different about it.",
    )
