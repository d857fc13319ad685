"""A calibration set that holds some points which do not belong: noticed, looked through by a person, and cleaned.

Label-Trim (Bashari, Sesia & Romano, ICML 2025, "Robust conformal outlier detection under contaminated reference data"): the m
strangest calibration points are shown to a person, and those that the person says do not belong leave; all others stay, however
strange. Trimming the strangest without looking would break the bound, because points that belong are among them.

Promised: if what was taken out did not belong, and nothing that does not belong was left, P(P < epsilon) <= epsilon as before.
Not promised: that few are left (m may be too small); `trimmed_rate` says what each that is left, and each mistake, may cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from idecode_core.conformal.calibration import Calibration, chosen_n
from idecode_core.conformal.ranking import IntArray, check_k, checked_scores, flagging_rank
from idecode_core.errors import ScoreError, SettingError

TAIL = 0.2
"""The share of the calibration scores that counts as their upper tail."""
BELOW = 10
"""Spacings that must lie between the start of the tail and a gap, to compare it with."""
WINDOWS = (1, 4)
"""A gap is one spacing; a valley before a second mode is some in a row."""
SEEN_BY_CHANCE = 0.01


@dataclass(frozen=True)
class Contamination:
    """The widest gap in the upper tail of calibration scores, and how many points lie beyond it."""

    k: int
    beyond: int
    p_value: float
    """The chance of such a gap when the tail thins out evenly, as a power law's or faster."""

    @property
    def suspected(self) -> bool:
        return self.p_value < SEEN_BY_CHANCE

    def reading(self) -> str:
        """A sentence for people; it says what to do where something was found."""
        if not self.suspected:
            return (
                "No gap in the tail of the calibration scores: nothing says that some of the points do not belong. That cannot "
                "rule it out."
            )
        return (
            f"The calibration set looks contaminated: {self.beyond:,} of {self.k:,} points lie beyond a gap in the tail of the "
            f"scores (p = {self.p_value:.2g}). If they do not belong, they hide others like them from being flagged. Look at the "
            f"{self.beyond:,} strangest."
        )


def contamination(calibration_scores: ArrayLike) -> Contamination:
    """Is there a gap, or a valley before a second mode, in the upper tail? A reason to look, not a proof.

    Spacings of log(score - median) in the tail, each times the number of points above it, are independent and exponential
    for a power law (Rényi 1953) and shrink outwards for lighter tails. So a spacing that is much longer than those below it, by
    the F law and Bonferroni over all places, is a gap. Fewer than 75 points are too few to say, and p is 1.

    >>> clean = np.random.default_rng(0).normal(size=980)
    >>> contamination(clean).suspected, contamination(np.r_[clean, np.linspace(8, 10, 20)]).beyond
    (False, 20)
    """
    scores = np.sort(checked_scores(calibration_scores, "calibration_scores"))
    t = int(TAIL * scores.size)
    nothing = Contamination(scores.size, 0, 1.0)
    if t < BELOW + max(WINDOWS) + 1:
        return nothing
    tail = scores[-t - 1 :] - np.median(scores)  # (t + 1,)
    if tail[0] <= 0:
        return nothing  # ties reach from the median into the tail
    above = np.arange(t, 0, -1)  # points above each spacing
    spacings = np.diff(np.log(tail)) * above  # (t,)
    sums = np.concatenate([[0.0], np.cumsum(spacings)])
    strongest = nothing
    for width in WINDOWS:
        first = np.arange(BELOW, t - width + 1)
        here, below = (sums[first + width] - sums[first]) / width, sums[first] / first
        ratio = np.divide(here, below, out=np.zeros(first.size), where=below > 0)
        p = np.asarray(stats.f.sf(ratio, 2 * width, 2 * first)) * first.size * len(WINDOWS)
        best = int(np.argmin(p))
        if p[best] < strongest.p_value:
            widest = first[best] + int(np.argmax(np.diff(tail)[first[best] : first[best] + width]))
            strongest = Contamination(scores.size, int(above[widest]), float(p[best]))
    return strongest


def strangest(calibration_scores: ArrayLike, m: int) -> IntArray:
    """The places of the m largest calibration scores, the strangest first; of equal ones, the earlier first.

    >>> strangest([0.3, 9.0, 0.1, 5.0], 2)
    array([1, 3])
    """
    scores = checked_scores(calibration_scores, "calibration_scores")
    if not 1 <= m < scores.size:
        raise SettingError(
            f"Between 1 and {scores.size - 1} of {scores.size} calibration points can be reviewed, got {m}. Ask for fewer: those "
            "that are not strange need no look."
        )
    return np.argsort(-scores, kind="stable")[:m].astype(np.int64)


def label_trim(
    calibration_scores: ArrayLike, m: int, do_not_belong: Sequence[int] | IntArray
) -> NDArray[np.bool_]:
    """Which calibration points stay: all but those of the m strangest that a person says do not belong. (k,)

    >>> label_trim([0.3, 9.0, 0.1, 5.0], 2, [1])
    array([ True, False,  True,  True])
    """
    scores = checked_scores(calibration_scores, "calibration_scores")
    shown, taken = strangest(scores, m), np.asarray(do_not_belong, dtype=np.int64).reshape(-1)
    other = np.setdiff1d(taken, shown)
    if other.size:
        raise SettingError(
            f"Only points among the {m} strangest may leave the calibration set, and number {int(other[0])} is not one of them. "
            "Review more of them."
        )
    kept = np.ones(scores.size, dtype=np.bool_)
    kept[taken] = False
    return kept


def trimmed(
    calibration: Calibration,
    m: int,
    do_not_belong: Sequence[int] | IntArray,
    *,
    n: int | None = None,
    aggregate: str = "sum",
) -> Calibration:
    """The calibration without the points, among its m strangest, that do not belong (places as `strangest` gives them)."""
    used = chosen_n(n, calibration.n_max, "this calibration")
    kept = label_trim(calibration.scores(used, aggregate), m, do_not_belong)
    return Calibration(calibration.score_vectors[kept], calibration.seed)


def trimmed_rate(k: int, epsilon: float, *, left: int = 0, mistaken: int = 0) -> float:
    """The bound on the false detection rate with k points after trimming, of which `left` do not belong all the same, and
    where `mistaken` points that belong were taken out: (J + mistaken) / (k - left + mistaken + 1), at most.

    A point is flagged when fewer than J points that stayed score as high. Of those that belong, then, fewer than J + mistaken
    do, and a point that belongs has any rank among them alike. With left = mistaken = 0 it is J / (k+1) <= epsilon.

    >>> round(trimmed_rate(999, 0.05), 4), round(trimmed_rate(999, 0.05, left=10), 4), round(trimmed_rate(999, 0.05, mistaken=5), 4)
    (0.049, 0.0495, 0.0537)
    """
    check_k(k)
    if left < 0 or mistaken < 0 or left >= k:
        raise ScoreError(
            f"left must lie between 0 and k - 1 = {k - 1} and mistaken be at least 0, got {left} and {mistaken}."
        )
    rank = flagging_rank(k, epsilon)
    return min((rank + mistaken) / (k - left + mistaken + 1), 1.0) if rank else 0.0


def what_it_promises(k: int, removed: int, m: int, epsilon: float = 0.05) -> str:
    """One sentence of what the trimmed set promises and one of what it does not."""
    worse = trimmed_rate(k, epsilon, mistaken=1) - trimmed_rate(k, epsilon)
    return (
        f"{removed:,} of the {m:,} strangest were taken out, {k:,} calibrate. The bound stays as long as none of those taken out "
        f"belongs: each that does adds {worse:.2g} to the rate. Ones that do not belong and were not among the {m:,} are still in."
    )
