"""What a detector catches and what it flags wrongly, from its stored scores: no model, no torch.

In one number, the mean AUROC over the OOD sets that scores are stored for. Power: the share of OOD points that is caught at an
epsilon; the guarantee bounds false alarms and says nothing about it. False detection rates of the iD test points, each beside the
band that holds it in 99 % of cases, or group by group beside the pooled one. And from a number to its points: those that the
detector got most wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal import FloatArray, observed_band
from idecode_core.conformal.calibration import Aggregate, Calibration, aggregate_scores
from idecode_core.conformal.groups import GroupRate, mondrian_p_values, rates_by_group
from idecode_core.conformal.judge import judge
from idecode_core.conformal.observed import ObservedRate, counted_rate
from idecode_core.folder.record import labels_by_part
from idecode_core.folder.shelf import ScoreSet
from idecode_core.folder.stored import Stored
from idecode_core.quality.methods import evaluate_sets, flagged_share, method_scores, runs

if TYPE_CHECKING:
    from idecode_core.files.tables import Table

WEAK_AUROC = 0.8


@dataclass(frozen=True)
class Strength:
    """Mean AUROC (0 to 1) with n draws."""

    auroc: float
    sets: int
    n: int

    @property
    def is_weak(self) -> bool:
        """Whether many strange inputs would pass for ordinary ones."""
        return self.auroc < WEAK_AUROC

    def __str__(self) -> str:
        """In percent, with a warning where it is due.

        >>> str(Strength(0.7612, 4, 5))
        'AUROC 76.1, weak'
        """
        return f"AUROC {100 * self.auroc:.1f}{', weak' if self.is_weak else ''}"


def strength(stored: Stored, n: int = 5) -> Strength:
    """From stored scores; n is at most what the calibration holds."""
    n = min(n, stored.calibration.n_max)
    evaluations = evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, n)
    aurocs = [evaluation.auroc.mean for evaluation in evaluations]
    return Strength(float(np.mean(aurocs)), len(aurocs), n)


WEAK_SHARE = 0.5
"""A detector that catches less than this share of its OOD sets, on average, is called weak."""


@dataclass(frozen=True)
class Caught:
    """The share of one OOD set that is flagged."""

    label: str
    share: float


def power(stored: Stored, n: int, epsilon: float, aggregate: str | Aggregate = "sum") -> tuple[Caught, ...]:
    """What is caught of each stored OOD set at epsilon, over all its runs of draws; the least first."""
    n = min(n, min((ood.score_vectors.shape[1] for ood in stored.ood_sets), default=n))
    caught = [
        Caught(ood.label, flagged_share(stored.calibration, ood.score_vectors, n, epsilon, aggregate))
        for ood in stored.ood_sets
    ]
    return tuple(sorted(caught, key=lambda ood_set: (ood_set.share, ood_set.label)))


def mean_share(caught: Sequence[Caught]) -> float:
    return sum(ood_set.share for ood_set in caught) / len(caught)


def is_weak(caught: Sequence[Caught]) -> bool:
    return bool(caught) and mean_share(caught) < WEAK_SHARE


def power_sentence(caught: Sequence[Caught], epsilon: float) -> str:
    """What to expect of a detector beside its verdict; a weak one is called weak.

    >>> power_sentence([Caught("noise", 0.1), Caught("claps", 0.3)], 0.05)
    'Weak at epsilon = 0.05: it catches about 10 % of noise and 30 % of claps. That something is not flagged says little.'
    """
    if not caught:
        return "How much it catches is not known: no scores of OOD sets are stored with this detector."
    shares = [f"{100 * ood_set.share:.0f} % of {ood_set.label}" for ood_set in caught]
    if len(shares) <= 2:
        what = " and ".join(shares)
    else:
        what = (
            f"{100 * mean_share(caught):.0f} % of what does not belong, as the mean over {len(shares)} OOD sets: from "
            f"{shares[0]} to {shares[-1]}"
        )
    catches = f"it catches about {what}."
    if is_weak(caught):
        return f"Weak at epsilon = {epsilon:g}: {catches} That something is not flagged says little."
    return f"At epsilon = {epsilon:g} {catches}"


@dataclass(frozen=True)
class OperatingPoint:
    """Counts of the first run of draws, the one that Guarantee counts too, so that both pages say the same."""

    epsilon: float
    id_flagged: int
    id_points: int
    ood_flagged: int
    ood_points: int

    @property
    def id_share(self) -> float:
        return self.id_flagged / self.id_points

    @property
    def ood_share(self) -> float:
        return self.ood_flagged / self.ood_points

    @property
    def on_roc(self) -> tuple[float, float]:
        """The point of the ROC curve: OOD points let through, iD points kept."""
        return 1 - self.ood_share, 1 - self.id_share


def operating_point(
    calibration: Calibration,
    id_set: ScoreSet,
    ood_set: ScoreSet,
    n: int,
    epsilon: float,
    aggregate: str | Aggregate = "sum",
) -> OperatingPoint:
    """One detector on one OOD set, conservative p-values."""
    known, strange = (
        judge(calibration, score_set.score_vectors, n=n, epsilon=epsilon, aggregate=aggregate).is_ood
        for score_set in (id_set, ood_set)
    )
    return OperatingPoint(epsilon, int(known.sum()), len(known), int(strange.sum()), len(strange))


@dataclass(frozen=True)
class RateInBand:
    """The share of iD test points that is flagged at epsilon, and its exact band (conformal.law)."""

    epsilon: float
    rate: float
    low: float
    high: float

    @property
    def inside(self) -> bool:
        return self.low <= self.rate <= self.high

    def __str__(self) -> str:
        """In percent.

        >>> str(RateInBand(0.05, 0.0512, 0.04, 0.0613))
        '5.1 [4.0, 6.1]'
        """
        return f"{100 * self.rate:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def id_p_values(stored: Stored, n: int) -> FloatArray:
    """p-values of the iD test points, from the first run of n draws."""
    return -method_scores(stored.calibration, stored.id_set.score_vectors, n)[0]


def rates_in_bands(stored: Stored, n: int, epsilons: Sequence[float]) -> list[RateInBand]:
    """A detector's false detection rate at each epsilon, from the first run of n draws."""
    first = stored.id_set.score_vectors[:, :n]
    return [rate_in_band(stored.calibration, first, n, epsilon) for epsilon in epsilons]


def rate_in_band(
    calibration: Calibration, id_vectors: NDArray[np.floating], n: int, epsilon: float
) -> RateInBand:
    """The share of iD test points that is flagged, over all runs of n draws, beside the band of one run."""
    rate = flagged_share(calibration, id_vectors, n, epsilon)
    return RateInBand(epsilon, rate, *observed_band(calibration.k, epsilon, len(id_vectors)))


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


TWICE = 2.0
"""A group that is flagged so many times as often as all points together is warned of, unless chance explains it."""
P_VALUE, FILE = "p_value", "file"
"""Columns of a table as `detect --csv` writes it; files are grouped by the folder that they lie in."""


def stored_rates_by_group(
    stored: Stored, n: int, epsilon: float, aggregate: str = "sum"
) -> tuple[GroupRate, ...]:
    """By the classes of a user's own files (files.csv), or by those that are stored with the test set; () where there are fewer
    than two. A group without calibration points cannot be ranked within itself, and then none is."""
    listed = labels_by_part(stored.folder)
    asked, known = listed.get("test", []), listed.get("calibration", [])
    if len(asked) != len(stored.id_set) or len(known) != stored.calibration.k:
        asked, known = [] if stored.id_set.groups is None else stored.id_set.groups.tolist(), []
    if len(set(asked)) < 2:
        return ()
    vectors = stored.id_set.score_vectors[:, :n].astype(np.float64)
    pooled = judge(stored.calibration, vectors, n=n, epsilon=epsilon, aggregate=aggregate).p_values
    within = None
    if set(asked) <= set(known):
        scores = aggregate_scores(vectors, aggregate)
        within = mondrian_p_values(stored.calibration.scores(n, aggregate), known, scores, asked)
    return tuple(rates_by_group(pooled, asked, epsilon, within))


def table_rates_by_group(table: "Table", column: str, epsilon: float) -> tuple[GroupRate, ...]:
    """By a column of a user's table with the p-values of inputs that belong, as `detect --csv` writes it."""
    labels = table.labels(column)
    if column == FILE:
        labels = np.array([PurePath(name).parent.name or "." for name in labels])
    return tuple(rates_by_group(table.scores(P_VALUE), labels, epsilon))


def observed_in(rate: GroupRate, epsilon: float, level: float = 0.95) -> ObservedRate:
    """What one threshold flags of a group, as a count with its exact interval."""
    return counted_rate(round(rate.pooled * rate.points), rate.points, epsilon, level)


def worst_treated(rates: Sequence[GroupRate], epsilon: float) -> GroupRate | None:
    """The most often flagged group, where that is twice the rate of all or more and its exact interval, with the level divided
    among the groups, lies above epsilon; None where chance may explain it."""
    for rate in rates[:1]:
        if rate.ratio >= TWICE and observed_in(rate, epsilon, 1 - 0.05 / len(rates)).low > epsilon:
            return rate
    return None
