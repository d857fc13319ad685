"""Own scores, no model at all: a threshold with a meaning for the scores of any detector.

    certified = certify(scores_of_normal_points, larger_is="strange")
    certified.threshold(0.05)             # at most 5 % of normal points lie beyond it, on average
    certified.threshold(0.05, delta=0.1)  # for 90 % of all sets of normal points, at most 5 %
    certified.p_values(new_scores)        # Eq. 5

The object has scikit-learn's verbs and signs: `score_samples` and `decision_function` are larger for normal points, and
`predict` says +1 for normal and -1 for strange. Scores have shape (count,), or (count, n) with one column per draw.
"""

import math
import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from idecode_core import conformal
from idecode_core.conformal import FloatArray, checked_scores
from idecode_core.conformal.calibration import aggregate_scores
from idecode_core.conformal.ranking import ranks_in
from idecode_core.conformal.settings import Settings
from idecode_core.errors import NothingFlaggedWarning, ScoreError, SettingError, WrongSignWarning

STRANGE, NORMAL = "strange", "normal"
LargerIs = Literal["strange", "normal"]
BY_CHANCE = 1e-3
"""A sign looks wrong when right ones would look so less often than this."""


def certify(
    scores: ArrayLike,
    larger_is: LargerIs = "strange",
    *,
    epsilon: float = 0.05,
    delta: float | None = None,
    aggregate: str = "sum",
) -> "Certified":
    """Calibrate on the scores of k normal points that the scoring method has not been trained on.

    `epsilon` and `delta` are what `predict` and `decision_function` go by; a threshold can be had for any.

    >>> certified = certify(range(1, 100))
    >>> certified.threshold(0.05), certified.p_values([96.5, 50.0])
    (96.0, array([0.04, 0.51]))
    """
    return Certified(larger_is, epsilon=epsilon, delta=delta, aggregate=aggregate).fit(scores)


def shortest(low: float, high: float, negated: bool = False) -> str:
    """The decimal number of the fewest digits, three or more, in [low, high); as it reads with the sign turned.

    >>> shortest(0.8923582807183266, 0.8941, negated=False), shortest(-12.34567, -12.3, negated=True)
    ('0.893', '12.34')
    """
    for digits in range(3, 18):
        step = 10.0 ** (math.floor(math.log10(abs(low))) + 1 - digits) if low else 10.0 ** (1 - digits)
        candidate = float(f"{math.ceil(low / step) * step:.{digits}g}")
        if low <= candidate < high:
            return f"{-candidate if negated else candidate:.{digits}g}"
    return repr(-low if negated else low)


class Certified(OutlierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Scores of normal points in order, and what a new score means among them. `certify` makes one."""

    strangeness_: FloatArray
    """The calibration scores in rising order, larger is stranger: (k,)."""

    def __init__(
        self,
        larger_is: LargerIs = "strange",
        *,
        epsilon: float = 0.05,
        delta: float | None = None,
        aggregate: str = "sum",
    ) -> None:
        self.larger_is = larger_is
        self.epsilon = epsilon
        self.delta = delta
        self.aggregate = aggregate

    def fit(self, scores: ArrayLike, y: object = None) -> "Certified":
        """Calibrate. `y` is not used; scikit-learn's pipelines hand it over."""
        if self.larger_is not in (STRANGE, NORMAL):
            raise SettingError(
                f"larger_is must be {STRANGE!r} or {NORMAL!r}, got {self.larger_is!r}. Say {STRANGE!r} for a distance or an "
                f"anomaly score, {NORMAL!r} for a likelihood or a confidence."
            )
        self.strangeness_ = np.sort(self._strangeness(scores, reset=True))
        return self

    @property
    def k(self) -> int:
        """The number of calibration points."""
        check_is_fitted(self)
        return int(self.strangeness_.size)

    @property
    def offset_(self) -> float:
        """scikit-learn's name: decision_function = score_samples - offset_."""
        return -self._threshold(self.epsilon, self.delta)

    def threshold(self, epsilon: float, delta: float | None = None) -> float:
        """The score beyond which (strictly) a point is flagged, in the scores' own sign; infinite when none can be.

        With `delta`, for a share 1 - delta of all calibration sets at most epsilon of the normal points lie beyond it;
        without, that holds on average over calibration sets (Theorem 1).
        """
        limit = self._threshold(epsilon, delta)
        return -limit if self.larger_is == NORMAL else limit

    def statement(self) -> str:
        """The threshold at the epsilon (and delta) of this object, and what it promises, in plain words."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingFlaggedWarning)
            limit = self.threshold(self.epsilon, self.delta)
        if np.isinf(limit):
            scores = "score" if self.k == 1 else "scores"
            return f"No threshold keeps the rate at {self.epsilon:g} with {self.k:,} calibration {scores}: nothing is ever flagged."
        side = "below" if self.larger_is == NORMAL else "above"
        share = f"at most {100 * self.epsilon:g} % of normal points are flagged"
        promise = (
            f"{share[0].upper()}{share[1:]}, on average over calibration sets."
            if self.delta is None
            else f"For {100 * (1 - self.delta):g} % of all calibration sets of this size, {share}."
        )
        return f"Flag scores {side} {self.short_threshold()} (k = {self.k:,}). {promise}"

    def short_threshold(self) -> str:
        """The threshold with as many digits as matter: between two calibration scores all thresholds flag the same of them. Rounded
        away from normal points, so the promise holds.

        >>> certify([0.1234567, 0.5234567, 0.9234567], epsilon=0.3).short_threshold()
        '0.924'
        """
        exact = self._threshold(self.epsilon, self.delta)
        stranger = self.strangeness_[self.strangeness_ > exact]
        return shortest(exact, float(stranger[0]) if stranger.size else np.inf, self.larger_is == NORMAL)

    def snippet(self) -> str:
        """The same in a service, as a program that needs nothing of this package."""
        limit, sign = self.threshold(self.epsilon, self.delta), "<" if self.larger_is == NORMAL else ">"
        return (
            f"THRESHOLD = {limit!r}  # k = {self.k:,}, epsilon = {self.epsilon:g}"
            + ("" if self.delta is None else f", delta = {self.delta:g}")
            + f"\n\n\ndef is_flagged(score: float) -> bool:\n    return score {sign} THRESHOLD\n"
        )

    def p_values(self, scores: ArrayLike) -> FloatArray:
        """Eq. 5 for each new point: (count,)."""
        check_is_fitted(self)
        strangeness = self._strangeness(scores)
        self._notice_wrong_sign(strangeness)
        p: FloatArray = (ranks_in(self.strangeness_, strangeness) + 1) / (self.k + 1)
        return p

    def score_samples(self, scores: ArrayLike) -> FloatArray:
        """How normal each point is, larger for normal: the scores themselves, or with the sign turned."""
        check_is_fitted(self)
        normality: FloatArray = -self._strangeness(scores)
        return normality

    def decision_function(self, scores: ArrayLike) -> FloatArray:
        """How far each score lies on the normal side of the threshold; below 0 is flagged."""
        return self.score_samples(scores) - self.offset_

    def predict(self, scores: ArrayLike) -> NDArray[np.int64]:
        """+1 for normal, -1 for flagged at the epsilon (and delta) of this object."""
        normality = self.score_samples(scores)
        self._notice_wrong_sign(-normality)
        return np.where(normality < self.offset_, -1, 1)

    def _threshold(self, epsilon: float, delta: float | None) -> float:
        j = conformal.flagging_rank(self.k, Settings(epsilon=epsilon, delta=delta).cut(self.k))
        return float(self.strangeness_[self.k - j]) if j else float("inf")

    def _strangeness(self, scores: ArrayLike, reset: bool = False) -> FloatArray:
        """Scores as (count,), larger is stranger; refuses what cannot be ranked, and other columns than fit has seen."""
        if hasattr(scores, "toarray"):
            raise ScoreError(
                "scores are sparse; expected a dense array of numbers. Call scores.toarray() first."
            )
        try:
            array = np.asarray(scores)
        except (TypeError, ValueError) as error:
            raise ScoreError(
                f"scores must be numbers, one per point, and could not be read as such ({error})."
            ) from error
        if array.dtype.kind == "c":
            raise ScoreError(
                "scores are complex. Complex data not supported: expected real numbers, one per point."
            )
        one_column = array.ndim == 1
        values = checked_scores(array, "scores", ndim=1 if one_column else 2)
        table: Any = values[:, None] if one_column else scores  # a data frame's column names are checked
        validate_data(self, table, reset=reset, skip_check_array=True)
        strangeness = values if one_column else aggregate_scores(values, self.aggregate)
        return -strangeness if self.larger_is == NORMAL else strangeness

    def _notice_wrong_sign(self, strangeness: FloatArray) -> None:
        """Warn when most new points look more normal than every calibration point, which is not how strange ones look."""
        below = int(np.count_nonzero(strangeness < self.strangeness_[0]))
        if 2 * below <= strangeness.size:
            return
        # The chance that the `below` lowest of all k + m scores are new ones, were they from the same source.
        i = np.arange(below)
        if np.prod((strangeness.size - i) / (self.k + strangeness.size - i)) < BY_CHANCE:
            side, other = ("above", STRANGE) if self.larger_is == NORMAL else ("below", NORMAL)
            warnings.warn(
                f"{below:,} of {strangeness.size:,} new scores lie {side} all {self.k:,} calibration scores, on the side that "
                f"was said to be normal. Does a larger score mean {other} here? Then say larger_is={other!r}.",
                WrongSignWarning,
                stacklevel=3,
            )
