"""A stream whose distribution changes at one point, watched by martingales and by CUSUM.

Scores are N(0, 1) before the change and N(strangeness, 1) after it.
"""

from dataclasses import dataclass

import numpy as np

from idecode_core.conformal import FloatArray
from idecode_core.errors import SettingError
from idecode_core.guarantees.streams import (
    MARTINGALES,
    StreamAlarms,
    cusum_alarms,
    log_power,
    online_p_values,
    ville_alarms,
)


@dataclass(frozen=True, eq=False)
class StreamRun:
    """One stream and what each watcher made of it. Times are 0-based; the change is between change_at - 1 and it."""

    change_at: int
    alpha: float  # Ville: the probability of any alarm without a change is at most alpha
    mean_time: float  # CUSUM: the mean time to a false alarm is at least this
    scores: FloatArray  # (length,)
    p_values: FloatArray  # (length,) smoothed, online
    watchers: dict[str, StreamAlarms]  # each martingale's name, and "CUSUM" (of the power martingale)

    def false_alarms(self, watcher: str) -> int:
        """The number of alarms before the change."""
        return int(np.count_nonzero(self.watchers[watcher].alarms < self.change_at))

    def delay(self, watcher: str) -> int | None:
        """How many changed points, the alarming one included, came before the first true alarm; None without one."""
        true_alarms = self.watchers[watcher].alarms[self.watchers[watcher].alarms >= self.change_at]
        return int(true_alarms[0]) - self.change_at + 1 if true_alarms.size else None


def changing_stream(
    *,
    generator: np.random.Generator,
    length: int = 1_000,
    change_at: int = 500,
    strangeness: float = 1.5,
    k: int = 500,
    alpha: float = 0.01,
    mean_time: float = 10_000.0,
) -> StreamRun:
    """A stream of `length` scores that changes at `change_at` (`change_at=length`: never), after k calibration scores.

    >>> run = changing_stream(generator=np.random.default_rng(0))
    >>> run.false_alarms("simple jumper"), run.delay("CUSUM") < 50
    (0, True)
    """
    if length < 1 or k < 1 or not 0 <= change_at <= length:
        raise SettingError(
            "length and k must be at least 1 and change_at must lie between 0 and length, "
            f"got length={length}, k={k}, change_at={change_at}."
        )
    scores = generator.normal(size=length) + strangeness * (np.arange(length) >= change_at)
    p = online_p_values(generator.normal(size=k), scores, generator=generator)
    watchers = {name: ville_alarms(p, martingale, alpha=alpha) for name, martingale in MARTINGALES.items()}
    watchers["CUSUM"] = cusum_alarms(p, log_power, mean_time=mean_time)
    return StreamRun(change_at, alpha, mean_time, scores, p, watchers)
