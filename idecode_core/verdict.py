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
    if verdict.batch > 1:
        return _meaning_together(verdict, noun)
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


def _meaning_together(verdict: Verdict, noun: str) -> tuple[str, str]:
    """Of a batch under false discovery control: the promise is about the flagged ones, not about those that belong."""
    share = f"{100 * verdict.epsilon:g} %"
    if verdict.is_ood:
        return (
            f"of the files that are flagged together, at most {share} are false discoveries, files that do belong, on "
            f"average over such batches of {verdict.batch}.",
            f"that this {noun} belongs with probability {verdict.epsilon:g}; nor that at most {share} of the files that "
            "belong are flagged: that is the promise of judging each alone.",
        )
    return (
        f"flagging this one too would not keep false discoveries to {share} of the flagged files; judged alone, "
        f"{comparison(verdict.p_value, verdict.epsilon)}.",
        f"that the {noun} belongs: among many files only the strangest stand out, and the detector may be blind to what is "
        "different about it.",
    )


def counting(noun: str = "image", *, smoothed: bool = False) -> str:
    """The one convention for ranks, explained once: on the page below the table, and in every report."""
    ties = ", with a random share of the ties" if smoothed else ""
    return (
        f"Rank counts the calibration {noun}s, out of k, that are at least as strange. The {noun} itself counts as one more: "
        f"p = (rank + 1) / (k + 1){ties}."
    )
