"""From a number to its points: of a scored set, those that the detector got most wrong."""

from dataclasses import dataclass

import numpy as np

from idecode_core.conformal.calibration import Calibration, aggregate_scores
from idecode_core.conformal.judge import judge
from idecode_core.folder.shelf import ScoreSet
from idecode_core.quality.methods import runs


@dataclass(frozen=True)
class Extremes:
    """The worst points of a set in its first run of draws, the worst first."""

    places: tuple[int, ...]
    """Rows of the set, from 0."""
    values: tuple[float, ...]
    """Their p-values; scores where there is no calibration."""
    is_flagged: tuple[bool, ...]
    points: int
    flagged: int | None
    """Of all points; None where there is no calibration."""


def extremes(
    calibration: Calibration | None,
    score_set: ScoreSet,
    n: int,
    epsilon: float,
    aggregate: str = "sum",
    *,
    most: int = 8,
) -> Extremes:
    """Of an OOD set the points that look most ordinary (misses), of an iD set those that look strangest (false alarms)."""
    vectors = runs(score_set.score_vectors, n)[0]
    scores = aggregate_scores(vectors, aggregate)
    order = np.argsort(scores if score_set.is_ood else -scores, kind="stable")[:most]
    places = tuple(int(i) for i in order)
    if calibration is None:
        return Extremes(places, tuple(scores[order].tolist()), (False,) * len(places), len(scores), None)
    judged = judge(calibration, vectors, epsilon=epsilon, aggregate=aggregate)
    return Extremes(
        places,
        tuple(judged.p_values[order].tolist()),
        tuple(bool(flag) for flag in judged.is_ood[order]),
        len(scores),
        int(judged.is_ood.sum()),
    )
