"""What Prometheus is told."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

P_VALUES = (0.001, 0.005, 0.01, 0.02, 0.05, *(round(0.1 * i, 1) for i in range(1, 11)))
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """One registry per service, so that two of them in one process do not mix."""

    def __init__(self) -> None:
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
        self.martingale = Gauge(
            "idecode_log_martingale",
            "log of the martingale against exchangeability: log(1 / alpha) is an alarm with false alarms below alpha.",
            registry=self.registry,
        )
        self.stream = Gauge(
            "idecode_stream_points", "Points since the martingale started from 1.", registry=self.registry
        )
        self._judged = self._flagged = 0

    def judged(self, p_value: float, is_ood: bool, log_martingale: float, points: int) -> None:
        self._judged += 1
        self._flagged += is_ood
        self.p_values.observe(p_value)
        self.flagged.inc(int(is_ood))
        self.flag_rate.set(self._flagged / self._judged)
        self.martingale.set(log_martingale)
        self.stream.set(points)

    def text(self) -> bytes:
        return bytes(generate_latest(self.registry))
