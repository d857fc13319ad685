"""Group-conditional (Mondrian) calibration: the bound holds within every group, not only on average over groups.

A group is any label that is a function of the point alone (its true class, the model's predicted class, a camera),
found in the same way for calibration and test points. Vovk, Gammerman & Shafer (2005), section 4.5.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from idecode_core import conformal
from idecode_core.conformal import FloatArray, check_epsilon, checked_p_values, checked_scores
from idecode_core.errors import ScoreError


def mondrian_p_values(
    calibration_scores: ArrayLike,
    calibration_groups: ArrayLike,
    test_scores: ArrayLike,
    test_groups: ArrayLike,
) -> FloatArray:
    """Eq. 5 within each group: a test point is ranked among the calibration points of its own group only.

    P(P < epsilon | group) <= epsilon for every group.

    >>> mondrian_p_values([1.0, 2.0, 30.0, 40.0], ["a", "a", "b", "b"], [3.0, 3.0], ["a", "b"])
    array([0.33333333, 1.        ])
    """
    calibration = checked_scores(calibration_scores, "calibration_scores")
    test = checked_scores(test_scores, "test_scores")
    known = _checked_groups(calibration_groups, calibration, "calibration_groups")
    asked = _checked_groups(test_groups, test, "test_groups")
    p = np.empty(test.size)
    for group in np.unique(asked):
        members, here = calibration[known == group], asked == group
        if members.size == 0:
            raise ScoreError(
                f"The group {group!s} has no calibration points, so nothing can be ranked in it. "
                "Calibrate with points of this group or join it with another."
            )
        p[here] = conformal.p_values(members, test[here])
    return p


def smallest_epsilon_by_group(calibration_groups: ArrayLike) -> dict[str, float]:
    """The smallest usable epsilon of each group: small groups cannot flag at a small epsilon.

    >>> {group: round(epsilon, 3) for group, epsilon in smallest_epsilon_by_group(["a"] * 19 + ["b"] * 4).items()}
    {'a': 0.05, 'b': 0.2}
    """
    groups, sizes = np.unique(np.asarray(calibration_groups), return_counts=True)
    return {str(g): conformal.smallest_epsilon(int(size)) for g, size in zip(groups, sizes, strict=True)}


@dataclass(frozen=True)
class GroupRate:
    """How often points of one group are flagged when all groups share one threshold, and when each has its own."""

    group: str
    points: int
    pooled: float  # share flagged by p-values among all calibration points
    within: (
        float | None
    )  # by p-values among those of the group; None where the calibration points' groups are not known
    ratio: float  # pooled, over the share of all points that is flagged


def rates_by_group(
    pooled: ArrayLike, groups: ArrayLike, epsilon: float, within: ArrayLike | None = None
) -> list[GroupRate]:
    """The rate of each group of points that belong, the most often flagged first. A pooled bound can hide a group that is
    flagged five times as often: it is kept on average over groups only.

    >>> [(rate.group, rate.pooled, rate.ratio) for rate in rates_by_group([0.01, 0.3, 0.4, 0.5], ["a", "a", "b", "b"], 0.05)]
    [('a', 0.5, 2.0), ('b', 0.0, 0.0)]
    """
    check_epsilon(epsilon)
    p = checked_p_values(pooled)
    labels = _checked_groups(groups, p, "groups")
    p_within = None if within is None else checked_p_values(within)
    overall = float(np.mean(p < epsilon))
    rates = []
    for group in np.unique(labels):
        here = labels == group
        rate = float(np.mean(p[here] < epsilon))
        inside = None if p_within is None else float(np.mean(p_within[here] < epsilon))
        ratio = rate / overall if overall else 1.0
        rates.append(GroupRate(str(group), int(here.sum()), rate, inside, ratio))
    return sorted(rates, key=lambda row: (-row.ratio, row.group))


def reading(rates: list[GroupRate], epsilon: float) -> str:
    """The group that a pooled bound treats worst, in a sentence; and the remedy.

    >>> reading(rates_by_group([0.01, 0.3, 0.4, 0.5], ["a", "a", "b", "b"], 0.05), 0.05)
    'One threshold for all flags 50.0% of a (2 points), 2 times the rate over all groups, and 0.0% of b (2 points).'
    """
    first, last = rates[0], rates[-1]
    told = (
        f"One threshold for all flags {first.pooled:.1%} of {first.group} ({first.points:,} points), {first.ratio:.2g} times the rate "
        f"over all groups, and {last.pooled:.1%} of {last.group} ({last.points:,} points)."
    )
    if first.within is None:
        return told
    return f"{told} Ranked within its own group, {first.within:.1%} of {first.group} is flagged: the bound of {epsilon:g} holds in each."


def _checked_groups(
    groups: ArrayLike, scores: FloatArray, name: str
) -> np.ndarray[tuple[int, ...], np.dtype]:
    array = np.asarray(groups)
    if array.shape != scores.shape:
        raise ScoreError(
            f"{name} must hold one label per score: expected shape {scores.shape}, got {array.shape}."
        )
    return array
