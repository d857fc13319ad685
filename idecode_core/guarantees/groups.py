"""Group-conditional (Mondrian) calibration: the bound holds within every group, not only on average over groups.

A group is any label that is a function of the point alone (its true class, the model's predicted class, a camera),
found in the same way for calibration and test points. Vovk, Gammerman & Shafer (2005), section 4.5.
"""

import numpy as np
from numpy.typing import ArrayLike

from idecode_core import conformal
from idecode_core.conformal import FloatArray, checked_scores
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


def _checked_groups(
    groups: ArrayLike, scores: FloatArray, name: str
) -> np.ndarray[tuple[int, ...], np.dtype]:
    array = np.asarray(groups)
    if array.shape != scores.shape:
        raise ScoreError(
            f"{name} must hold one label per score: expected shape {scores.shape}, got {array.shape}."
        )
    return array
