"""The stream of requests, watched by a martingale, one point at a time.

`guarantees.streams` has the mathematics for a whole stream at once (`online_p_values`, `log_simple_jumper`); this keeps
what is needed to go on from the last point.
"""

import bisect
import math

import numpy as np
from numpy.typing import ArrayLike

JUMP = 0.01
SLOPES = np.array([-1.0, 0.0, 1.0])
MOST_POINTS = 100_000
"""Then the martingale starts again from 1: all earlier points are kept for ranking, and memory must stay bounded."""


class WatchedStream:
    """The natural logarithm of the simple jumper on smoothed online p-values."""

    def __init__(
        self, calibration_scores: ArrayLike, generator: np.random.Generator, most: int = MOST_POINTS
    ) -> None:
        self.calibration = sorted(np.asarray(calibration_scores, dtype=np.float64).tolist())
        self.generator, self.most = generator, most
        self.restart()

    def restart(self) -> None:
        self.seen = self.calibration.copy()
        self.share = np.full(len(SLOPES), 1 / len(SLOPES))  # of the capital, on each bet
        self.log_martingale = 0.0
        self.points = 0

    def add(self, score: float) -> float:
        """One more point; the logarithm of the martingale after it."""
        if self.points >= self.most:
            self.restart()
        below, at_most = bisect.bisect_left(self.seen, score), bisect.bisect_right(self.seen, score)
        u = 1.0 - self.generator.random()  # in (0, 1]
        p = (len(self.seen) - at_most + u * (at_most - below + 1)) / (len(self.seen) + 1)
        self.seen.insert(at_most, score)
        self.share = ((1 - JUMP) * self.share + JUMP / len(SLOPES)) * (1 + (p - 0.5) * SLOPES)
        growth = float(self.share.sum())
        self.share /= growth
        self.log_martingale += math.log(growth)
        self.points += 1
        return self.log_martingale
