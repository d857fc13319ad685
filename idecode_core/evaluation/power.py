"""Power: the share of OOD points that a detector catches at an epsilon, from its stored scores. No torch.

The guarantee bounds false alarms and says nothing about what is caught; this does, for the sets that are stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from idecode_core.conformal.calibration import Aggregate
from idecode_core.evaluation.methods import flagged_share
from idecode_core.folder.stored import Stored

WEAK = 0.5
"""A detector that catches less than this share of its OOD sets, on average, is called weak."""


@dataclass(frozen=True)
class Caught:
    """The share of one OOD set that is flagged."""

    label: str
    share: float


def power(stored: Stored, n: int, epsilon: float, aggregate: str | Aggregate = "sum") -> tuple[Caught, ...]:
    """What is caught of each stored OOD set at epsilon, over all its runs of draws; the least first."""
    n = min(n, min((ood.score_vectors.shape[1] for ood in stored.ood_sets), default=n))
    caught = [
        Caught(ood.label, flagged_share(stored.calibration, ood.score_vectors, n, epsilon, aggregate))
        for ood in stored.ood_sets
    ]
    return tuple(sorted(caught, key=lambda one: (one.share, one.label)))


def mean_share(caught: Sequence[Caught]) -> float:
    return sum(one.share for one in caught) / len(caught)


def is_weak(caught: Sequence[Caught]) -> bool:
    return bool(caught) and mean_share(caught) < WEAK


def power_sentence(caught: Sequence[Caught], epsilon: float) -> str:
    """What to expect of a detector beside its verdict; a weak one is called weak.

    >>> power_sentence([Caught("noise", 0.1), Caught("claps", 0.3)], 0.05)
    'Weak at epsilon = 0.05: it catches about 10 % of noise and 30 % of claps. That something is not flagged says little.'
    """
    if not caught:
        return "How much it catches is not known: no scores of OOD sets are stored with this detector."
    shares = [f"{100 * one.share:.0f} % of {one.label}" for one in caught]
    if len(shares) <= 2:
        what = " and ".join(shares)
    else:
        what = (
            f"{100 * mean_share(caught):.0f} % of what does not belong, as the mean over {len(shares)} OOD sets: from "
            f"{shares[0]} to {shares[-1]}"
        )
    found = f"it catches about {what}."
    if is_weak(caught):
        return f"Weak at epsilon = {epsilon:g}: {found} That something is not flagged says little."
    return f"At epsilon = {epsilon:g} {found}"
