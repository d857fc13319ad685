"""Many inputs and endless ones, simulated: a batch judged together, and a stream that changes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idecode_core import conformal
from idecode_core.conformal import FloatArray, check_epsilon
from idecode_core.conformal.multiple import benjamini_hochberg, false_discovery_proportion, storey
from idecode_core.conformal.streams import (
    MARTINGALES,
    StreamAlarms,
    cusum_alarms,
    log_power,
    online_p_values,
    ville_alarms,
)
from idecode_core.errors import SettingError

BATCH_RULES = ("plain threshold", "Benjamini-Hochberg", "Storey")


@dataclass(frozen=True, eq=False)
class BatchComparison:
    """Three rules on the same batches. The first axis of each array follows BATCH_RULES."""

    epsilon: float  # the plain threshold flags p < epsilon
    q: float  # the false discovery rate the other two keep to
    k: int
    is_ood: NDArray[np.bool_]  # (size,) the truth, the same in every repeat
    false_discovery_proportions: FloatArray  # (rules, repeats): iD points among the flagged
    false_detection_rates: FloatArray  # (rules, repeats): flagged points among the iD; NaN without iD points
    detection_rates: FloatArray  # (rules, repeats): flagged points among the OOD; NaN without OOD points
    p_values: FloatArray  # (size,) of the first repeat, to be shown
    flagged: NDArray[np.bool_]  # (rules, size) in the first repeat


def mixed_batch(
    *,
    generator: np.random.Generator,
    size: int = 100,
    ood_share: float = 0.1,
    strangeness: float = 4.0,
    epsilon: float = 0.05,
    q: float = 0.1,
    k: int = 1_000,
    repeats: int = 200,
) -> BatchComparison:
    """Judges `repeats` batches, each with a calibration set of its own.

    >>> result = mixed_batch(generator=np.random.default_rng(0))
    >>> plain, bh, _ = result.false_discovery_proportions.mean(axis=1)
    >>> bool(plain > 0.25), bool(bh <= 0.1)
    (True, True)
    """
    check_epsilon(epsilon)
    if not 0.0 <= ood_share <= 1.0:
        raise SettingError(f"ood_share must lie between 0 and 1, got {ood_share}.")
    if min(size, k, repeats) < 1:
        raise SettingError(f"size, k and repeats must be at least 1, got {size}, {k} and {repeats}.")
    is_ood = np.arange(size) < round(ood_share * size)
    p = np.stack(
        [
            conformal.p_values(generator.normal(size=k), generator.normal(size=size) + strangeness * is_ood)
            for _ in range(repeats)
        ]
    )  # (repeats, size)
    flagged = np.stack(
        [
            p < epsilon,
            np.stack([benjamini_hochberg(row, q) for row in p]),
            np.stack([storey(row, q, k=k) for row in p]),
        ]
    )  # (rules, repeats, size)
    proportions = np.array([[false_discovery_proportion(f, is_ood) for f in rule] for rule in flagged])
    return BatchComparison(
        epsilon=epsilon,
        q=q,
        k=k,
        is_ood=is_ood,
        false_discovery_proportions=proportions,
        false_detection_rates=_share(flagged[:, :, ~is_ood]),
        detection_rates=_share(flagged[:, :, is_ood]),
        p_values=p[0],
        flagged=flagged[:, 0],
    )


def _share(flags: NDArray[np.bool_]) -> FloatArray:
    """The mean over the last axis; NaN, without a warning, when it is empty."""
    if flags.shape[-1] == 0:
        return np.full(flags.shape[:-1], np.nan)
    return np.asarray(flags.mean(axis=-1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class StreamRun:
    """One stream and what each watcher made of it. Times are 0-based; the change is between change_at - 1 and it."""

    change_at: int
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

    Without a change the probability of any alarm by Ville is at most `alpha`, the mean time to one by CUSUM at least `mean_time`.

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
    return StreamRun(change_at, p, watchers)
