"""Streams: exchangeability martingales on smoothed p-values, and alarms with a guarantee.

Under exchangeability, p-values that rank each point among calibration *and all earlier stream points* are
independent and uniform (`online_p_values`). A martingale bets against that: its expected value stays 1, so it
grows large only when the stream has changed. Everything is returned as natural logarithms, because a good bet grows
beyond any float. Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapters 8 and 9.
"""

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from idecode_core.conformal import FloatArray, IntArray, checked_p_values, checked_scores
from idecode_core.errors import SettingError

LogMartingale = Callable[[FloatArray], FloatArray]
"""p-values (time,) -> natural logarithm of the martingale after each of them (time,)."""


class OnlineRanks:
    """Smoothed p-values of a stream, one point at a time: each, once judged, joins the calibration set of the next."""

    def __init__(self, calibration_scores: ArrayLike) -> None:
        self.seen: list[float] = sorted(checked_scores(calibration_scores, "calibration_scores").tolist())

    def p_value(self, score: float, u: float) -> float:
        """The p-value of the next point, with u uniform in (0, 1]."""
        below, at_most = bisect.bisect_left(self.seen, score), bisect.bisect_right(self.seen, score)
        p = (len(self.seen) - at_most + u * (at_most - below + 1)) / (len(self.seen) + 1)
        self.seen.insert(at_most, score)
        return p


def online_p_values(
    calibration_scores: ArrayLike, stream_scores: ArrayLike, *, generator: np.random.Generator
) -> FloatArray:
    """`OnlineRanks` for a whole stream.

    With one fixed calibration set the p-values of a stream are each uniform but not independent: what that set got
    wrong by chance is bet on again and again, and long streams raise false alarms above alpha.

    >>> online_p_values([1.0, 2.0], [9.0, 9.5], generator=np.random.default_rng(0)).round(2)
    array([0.12, 0.18])
    """
    ranks = OnlineRanks(calibration_scores)
    stream = checked_scores(stream_scores, "stream_scores")
    uniforms = 1.0 - generator.random(stream.size)  # in (0, 1], as in smoothed_p_values
    return np.array([ranks.p_value(score, u) for score, u in zip(stream.tolist(), uniforms, strict=True)])


def log_power(p_values: ArrayLike, kappa: float = 0.5) -> FloatArray:
    """log of prod kappa p_i^{kappa-1}: bets on small p-values, harder for smaller kappa in (0, 1).

    >>> log_power([0.01, 1.0]).round(3)
    array([1.609, 0.916])
    """
    if not 0.0 < kappa < 1.0:
        raise SettingError(f"kappa must lie strictly between 0 and 1, got {kappa}. A usual choice is 0.5.")
    bets = math.log(kappa) + (kappa - 1) * np.log(checked_p_values(p_values))
    return np.asarray(np.cumsum(bets), dtype=np.float64)


def log_mixture(p_values: ArrayLike) -> FloatArray:
    """log of the integral over kappa in (0, 1) of prod kappa p_i^{kappa-1}: no kappa to choose.

    With S_t = -sum log p_i the integral is B(t+1, 1) 1F1(1; t+2; S_t) = e^S S^{-(t+1)} gamma(t+1, S).

    >>> log_mixture([0.01, 1.0]).round(3)
    array([1.493, 0.54 ])
    """
    s = np.cumsum(-np.log(checked_p_values(p_values)))  # S_t
    t = np.arange(1, s.size + 1)
    large = s > t + 2
    # Each form is exact; the first overflows for large S, the second underflows for small S.
    small_form = np.log(special.hyp1f1(1.0, t + 2, np.where(large, 0.0, s))) - np.log(t + 1)
    x = np.where(large, s, t + 3.0)
    large_form = x - (t + 1) * np.log(x) + special.gammaln(t + 1) + np.log(special.gammainc(t + 1, x))
    return np.asarray(np.where(large, large_form, small_form), dtype=np.float64)


class SimpleJumper:
    """ALRW, Algorithm 8.1, one p-value at a time: capital on the bets 1 + e (p - 1/2), a share `jump` of it moved evenly
    between them at each step, so that it follows changes in either direction."""

    def __init__(self, jump: float = 0.01, slopes: Sequence[float] = (-1.0, 0.0, 1.0)) -> None:
        if not 0.0 < jump < 1.0:
            raise SettingError(f"jump must lie strictly between 0 and 1, got {jump}. A usual choice is 0.01.")
        if not slopes or max(abs(slope) for slope in slopes) >= 2:
            raise SettingError(
                f"slopes must lie strictly between -2 and 2, or one bet could lose everything, got {slopes}."
            )
        self.jump, self.slopes = jump, np.asarray(slopes)
        self.share = np.full(len(slopes), 1 / len(slopes))  # of the capital, on each bet

    def growth(self, p: float) -> float:
        """By which factor the capital grows with the next p-value."""
        moved = (1 - self.jump) * self.share + self.jump / len(self.share)
        share = moved * (1 + (p - 0.5) * self.slopes)
        growth = float(share.sum())
        self.share = share / growth
        return growth


def log_simple_jumper(
    p_values: ArrayLike, jump: float = 0.01, slopes: Sequence[float] = (-1.0, 0.0, 1.0)
) -> FloatArray:
    """log of the `SimpleJumper` after each p-value.

    >>> round(float(log_simple_jumper([0.1] * 50)[-1]), 2)
    15.42
    """
    jumper = SimpleJumper(jump, slopes)
    growth = [jumper.growth(p) for p in checked_p_values(p_values).tolist()]
    return np.asarray(np.cumsum(np.log(growth)), dtype=np.float64)


MARTINGALES: dict[str, LogMartingale] = {
    "power": log_power,
    "mixture": log_mixture,
    "simple jumper": log_simple_jumper,
}


@dataclass(frozen=True, eq=False)
class StreamAlarms:
    """The path that is watched, its threshold, and the (0-based) times at which it reached it."""

    log_path: FloatArray  # (time,) natural logarithm; back to the start after each alarm
    log_threshold: float
    alarms: IntArray  # (alarms,)


def ville_alarms(
    p_values: ArrayLike, martingale: LogMartingale = log_simple_jumper, *, alpha: float = 0.01
) -> StreamAlarms:
    """Alarm when the martingale reaches 1/alpha. Without a change, P(any alarm, ever) <= alpha (Ville 1939).

    The martingale starts again from 1 after each alarm, and the bound holds from each start on.

    >>> ville_alarms([0.01] * 8, log_power, alpha=0.01).alarms
    array([2, 5])
    """
    if not 0.0 < alpha < 1.0:
        raise SettingError(f"alpha must lie strictly between 0 and 1, got {alpha}. A usual choice is 0.01.")
    return _watch(checked_p_values(p_values), martingale, -math.log(alpha))


def cusum_alarms(
    p_values: ArrayLike, martingale: LogMartingale = log_simple_jumper, *, mean_time: float = 1_000.0
) -> StreamAlarms:
    """Alarm when max over i < t of M_t / M_i reaches `mean_time`: quick even when the change comes late.

    A martingale loses capital while nothing happens and must earn it back after the change; CUSUM forgets the loss.
    The price: false alarms do come, but the mean time to the first is at least `mean_time`, because CUSUM is below
    the Shiryaev-Roberts sum of M_t / M_i, whose mean after t steps is t. Volkhonskiy et al. (2017), "Inductive
    conformal martingales for change-point detection"; Vovk et al. (2021), "Retrain or not retrain".

    >>> cusum_alarms([1.0] * 5 + [0.01] * 3, log_power, mean_time=100.0).alarms
    array([7])
    """
    if not mean_time > 1.0:
        raise SettingError(f"mean_time must be larger than 1, got {mean_time}. A usual choice is 1000.")

    def log_cusum(p: FloatArray) -> FloatArray:
        log_m = np.concatenate([[0.0], martingale(p)])  # M_0 = 1
        return np.asarray(log_m[1:] - np.minimum.accumulate(log_m[:-1]), dtype=np.float64)

    return _watch(checked_p_values(p_values), log_cusum, math.log(mean_time))


def shiryaev_roberts_alarms(
    p_values: ArrayLike, martingale: LogMartingale = log_simple_jumper, *, mean_time: float = 1_000.0
) -> StreamAlarms:
    """Alarm when R_t = sum over i < t of M_t / M_i reaches `mean_time`; it starts again after each alarm.

    E[R_t] = t without a change, so the mean time to a false alarm is at least `mean_time`, from each start on: a bound that does
    not end when the martingale is restarted, as "no alarm ever with probability 1 - alpha" does. Never later than `cusum_alarms`.
    Vovk, Gammerman & Shafer (2022), chapter 8.

    >>> shiryaev_roberts_alarms([1.0] * 5 + [0.01] * 3, log_power, mean_time=100.0).alarms
    array([7])
    """
    if not mean_time > 1.0:
        raise SettingError(f"mean_time must be larger than 1, got {mean_time}. A usual choice is 1000.")

    def log_sum(p: FloatArray) -> FloatArray:
        log_m = np.concatenate([[0.0], martingale(p)])  # M_0 = 1
        return np.asarray(log_m[1:] + np.logaddexp.accumulate(-log_m[:-1]), dtype=np.float64)

    return _watch(checked_p_values(p_values), log_sum, math.log(mean_time))


def _watch(p: FloatArray, statistic: LogMartingale, log_threshold: float) -> StreamAlarms:
    path, alarms, start = np.empty(p.size), [], 0
    while start < p.size:
        path[start:] = statistic(p[start:])
        reached = np.flatnonzero(path[start:] >= log_threshold)
        if reached.size == 0:
            break
        alarms.append(start + int(reached[0]))
        start = alarms[-1] + 1
    return StreamAlarms(path, log_threshold, np.array(alarms, dtype=np.int64))
