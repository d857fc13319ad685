"""What Prometheus is told, and the stream of requests, watched by a martingale (`conformal.streams`)."""

import math
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from idecode_core.conformal.streams import OnlineRanks, SimpleJumper
from idecode_core.errors import InputError
from idecode_core.files import write_npz
from idecode_core.files.read import read_arrays

P_VALUES = (0.001, 0.005, 0.01, 0.02, 0.05, *(round(0.1 * i, 1) for i in range(1, 11)))
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """One registry per service, so that two of them in one process do not mix."""

    def __init__(self, stream: "WatchedStream") -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "idecode_requests", "Files that were posted, by HTTP status.", ["status"], registry=self.registry
        )
        self.seconds = Histogram(
            "idecode_request_seconds",
            "From the request to its answer.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self.flagged = Counter("idecode_flagged", "Files that were flagged.", registry=self.registry)
        self.flag_rate = Gauge(
            "idecode_flag_rate",
            "Share of flagged files since the start; epsilon is expected.",
            registry=self.registry,
        )
        self.p_values = Histogram(
            "idecode_p_value",
            "p-values; even if nothing has changed.",
            buckets=P_VALUES,
            registry=self.registry,
        )
        # These read the stream when they are asked, so that after a restart they say at once what was kept.
        Gauge(
            "idecode_log_martingale",
            "log of the martingale against exchangeability: log(1 / alpha) is an alarm with false alarms below alpha.",
            registry=self.registry,
        ).set_function(lambda: stream.log_martingale)
        Gauge(
            "idecode_stream_points", "Points since the martingale started from 1.", registry=self.registry
        ).set_function(lambda: stream.points)
        Gauge(
            "idecode_log_shiryaev_roberts",
            "log of the Shiryaev-Roberts sum: an alarm at log(A) comes falsely once in A points on average, or less often.",
            registry=self.registry,
        ).set_function(lambda: stream.log_sum)
        self._judged = self._flagged = 0

    def judged(self, p_value: float, is_ood: bool) -> None:
        self._judged += 1
        self._flagged += is_ood
        self.p_values.observe(p_value)
        self.flagged.inc(int(is_ood))
        self.flag_rate.set(self._flagged / self._judged)

    def text(self) -> bytes:
        return bytes(generate_latest(self.registry))


MOST_POINTS = 100_000
"""Then the martingale starts again from 1: all earlier points are kept for ranking, and memory must stay bounded."""


class WatchedStream:
    """The natural logarithms of the simple jumper on smoothed online p-values and of its Shiryaev-Roberts sum; they can be written
    down and gone on from."""

    def __init__(
        self, calibration_scores: ArrayLike, generator: np.random.Generator, most: int = MOST_POINTS
    ) -> None:
        self.calibration = np.asarray(calibration_scores, dtype=np.float64)
        self.generator, self.most = generator, most
        self.restart()

    def restart(self) -> None:
        self.ranks, self.jumper = OnlineRanks(self.calibration), SimpleJumper()
        self.log_martingale, self.log_sum = 0.0, -math.inf
        self.points = 0

    def add(self, score: float) -> float:
        """One more point; the logarithm of the martingale after it."""
        if self.points >= self.most:
            self.restart()
        p = self.ranks.p_value(score, 1.0 - self.generator.random())  # u in (0, 1]
        grown = math.log(self.jumper.growth(p))
        self.log_martingale += grown
        self.log_sum = float(np.logaddexp(self.log_sum, 0.0)) + grown  # R_t = (R_{t-1} + 1) M_t / M_{t-1}
        self.points += 1
        return self.log_martingale

    def save(self, path: Path) -> None:
        write_npz(
            path,
            {
                "calibration": self.calibration,
                "seen": np.array(self.ranks.seen),
                "share": self.jumper.share,
                "logs": np.array([self.log_martingale, self.log_sum]),
            },
        )

    def resume(self, path: Path) -> bool:
        """Go on from what `save` has written; whether it was there, whole, and of the same calibration scores."""
        try:
            saved = read_arrays(
                path,
                ("calibration", "seen", "share", "logs"),
                what="a stream",
                error=InputError,
                hint="",
            )
            points = len(saved["seen"]) - len(self.calibration)
            fits = (
                np.array_equal(saved["calibration"], self.calibration)
                and 0 <= points <= self.most
                and saved["share"].shape == self.jumper.share.shape
                and saved["logs"].shape == (2,)
                and bool(np.isfinite(np.append(saved["seen"], saved["logs"])).all())
            )
        except (InputError, TypeError, ValueError):
            return False
        if fits:
            self.ranks.seen = sorted(saved["seen"].astype(np.float64).tolist())
            self.jumper.share = saved["share"].astype(np.float64)
            self.log_martingale, self.log_sum = saved["logs"].astype(np.float64).tolist()
            self.points = points
        return fits
