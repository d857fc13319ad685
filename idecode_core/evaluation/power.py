"""Power: the share of OOD points that a detector catches at an epsilon, from its stored scores. No torch.

The guarantee bounds false alarms and says nothing about what is caught; this does, for the sets that are stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from idecode_core.conformal import FloatArray
from idecode_core.conformal.calibration import Aggregate
from idecode_core.evaluation.methods import runs
from idecode_core.folder.stored import Stored

WEAK = 0.5
"""A detector that catches less than this share of its OOD sets, on average, is called weak."""


@dataclass(frozen=True, eq=False)
class SetPValues:
    """The p-values of one stored OOD set, over all its runs of draws; they do not depend on epsilon."""

    label: str
    p_values: FloatArray  # (runs * N,)


@dataclass(frozen=True)
class Caught:
    """The share of one OOD set that is flagged."""

    label: str
    share: float


def ood_p_values(stored: Stored, n: int, aggregate: str | Aggregate = "sum") -> tuple[SetPValues, ...]:
    """P of Eq. 5 for every point of every stored OOD set."""
    n = min(n, min((ood.score_vectors.shape[1] for ood in stored.ood_sets), default=n))
    return tuple(
        SetPValues(
            ood.label,
            np.concatenate(
                [stored.calibration.p_values(run, aggregate) for run in runs(ood.score_vectors, n)]
            ),
        )
        for ood in stored.ood_sets
    )


def power(sets: Sequence[SetPValues], epsilon: float) -> tuple[Caught, ...]:
    """What is caught of each set at epsilon, the least first.

    >>> power([SetPValues("b", np.array([0.01, 0.2])), SetPValues("a", np.array([0.5, 0.9]))], 0.05)
    (Caught(label='a', share=0.0), Caught(label='b', share=0.5))
    """
    caught = [Caught(one.label, float(np.mean(one.p_values < epsilon))) for one in sets]
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
