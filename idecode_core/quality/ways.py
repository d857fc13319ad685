"""How new rows of a user's table are judged, by command and page: each alone, within its group, weighted for a source that has shifted,
with the help of known outliers, in folds, or many together."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal import p_values
from idecode_core.conformal.conditional import corrected_epsilon
from idecode_core.conformal.cross import cross_p_values, promise
from idecode_core.conformal.evidence import envelope, stable_discoveries
from idecode_core.conformal.groups import mondrian_p_values, rates_by_group, reading
from idecode_core.conformal.integrative import gain, integrative_p_values
from idecode_core.conformal.merging import twice_the_mean
from idecode_core.conformal.multiple import benjamini_hochberg, storey
from idecode_core.conformal.online import PROCEDURES, check_order, online_discoveries
from idecode_core.conformal.streams import online_p_values, shiryaev_roberts_alarms
from idecode_core.conformal.weighted import (
    FEWEST,
    check_effective,
    density_ratio,
    places,
    weighted_p_values,
    weighted_selection,
    what_it_costs,
)
from idecode_core.errors import InputError, SettingError
from idecode_core.quality.columns import (
    features,
    has_vectors,
    matrix,
    number_columns,
    seeds,
    summed,
    taken,
    with_verdicts,
)

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray
    from idecode_core.conformal.certify import Certified
    from idecode_core.files.tables import Table

    Verdicts = tuple[FloatArray, NDArray[np.bool_]]
    Rows = NDArray[np.int64]

ADDED = ("p_value", "is_ood")
STREAM = "shiryaev-roberts"
IN_TIME = (*PROCEDURES, STREAM)
"""They judge a row by those before it."""
ABOVE_EPSILON = ("storey", "envelope", STREAM)
"""They flag some where no p-value lies below epsilon."""
TOGETHER = {
    "--folds": ("each",),
    "--outliers": ("each",),
    "--shifted-to": ("each", "bh"),
    "--groups": ("each", "bh", "storey", *PROCEDURES),
}
"""What can be asked of many rows at once beside each option."""
SURE = 0.1
"""delta of the envelope, where none is given."""
AMONG_THESE = "that it holds for these very flags, whose share may be larger"
INDEPENDENT = "it for p-values of one calibration set: it is proven for independent ones, and measured here (docs/guarantees.md)"
NOT_PROMISED = {
    "bh": AMONG_THESE,
    "storey": AMONG_THESE,
    "lord++": INDEPENDENT,
    "saffron": INDEPENDENT,
    "addis": INDEPENDENT,
    "e-lond": "many flags: it holds for any dependence, and finds little unless k is very large",
}


@dataclass
class Way:
    """What was asked for beside epsilon and delta, and what there is to say about it."""

    certified: "Certified"
    known: "Table"
    column: str
    groups: str = ""
    shifted_to: "Table | None" = None
    many: str = "each"
    outliers: "Table | None" = None
    folds: str = ""
    time: str = ""
    draws: int = 0
    """Of a detector's score vectors, how many are summed to a score."""
    said: list[str] = field(default_factory=list)
    columns: "dict[str, FloatArray]" = field(default_factory=dict)
    """What is said of each row beside its p-value and flag."""

    def __post_init__(self) -> None:
        if len(self.asked) > 1:
            raise SettingError(
                f"{' and '.join(self.asked)} do not go together: nothing is proven for both. Leave one of them out."
            )
        for way, rules in TOGETHER.items():
            if way in self.asked and self.many not in rules:
                raise SettingError(
                    f"{way} goes with --many {' or '.join(rules)}: nothing is proven for it with {self.many}. Leave one of them out."
                )
        alone = self.many == "envelope" or (self.many == "each" and self.asked in ([], ["--groups"]))
        if self.certified.delta is not None and not alone:
            raise SettingError(
                "--delta goes with --many envelope, or with --many each, alone or with --groups: nothing is proven for it with the others. "
                "Leave one of them out."
            )
        if self.time and self.many not in IN_TIME:
            raise SettingError(
                f"--time goes with --many {', '.join(IN_TIME)}, which judge a row by those before it; for {self.many} the order does not "
                "matter. Leave one of them out."
            )

    @property
    def asked(self) -> list[str]:
        """Of the options that change how a row is ranked, those that were given."""
        options = {
            "--groups": self.groups, "--folds": self.folds, "--shifted-to": self.shifted_to, "--outliers": self.outliers
        }  # fmt: skip
        return [name for name, value in options.items() if value not in ("", None)]

    @property
    def plain(self) -> bool:
        """One threshold for all."""
        return self.many == "each" and not self.asked

    @property
    def names(self) -> list[str]:
        """The folds, and so the titles of the columns of new scores."""
        return sorted({str(name) for name in self.known.labels(self.folds)})

    def rows(self, table: "Table", column: str) -> list[dict[str, Any]]:
        """The rows of the user's table, in their order and with all their columns, and what is said of each."""
        place = 0 if has_vectors(table) and not table.titles else table.place(column)
        scores = summed(table, column, self.draws)
        scored = np.flatnonzero(~np.isnan(scores))
        verdicts = self.judge(table, scores, scored) if scored.size else (np.empty(0), np.empty(0, np.bool_))
        return with_verdicts(
            table, place, scores, {**self.columns, **dict(zip(ADDED, verdicts, strict=True))}
        )

    def judge(self, table: "Table", scores: "FloatArray", scored: "Rows") -> "Verdicts":
        """p-values and flags of the rows `scored`, by the scores of all rows of the user's table."""
        if self.time:
            place = table.place(self.time)
            check_order(table.columns[place].to_pylist(), table.first_line)
        if self.many == "e-bh":
            return self._over_seeds(table, scored)
        if self.many == STREAM:
            return self._stream(scores[scored])
        if self.folds:
            return self._across_folds(table, scored)
        if self.groups:
            return self._within_groups(table, scores[scored], scored)
        if self.shifted_to is not None:
            return self._weighted(table, scores[scored], scored)
        if self.outliers is not None:
            return self._with_outliers(table, scored)
        p = self.certified.p_values(scores[scored])
        if self.many == "each":
            return p, self.certified.predict(scores[scored]) == -1
        return p, self._enveloped(p) if self.many == "envelope" else self._together(p)

    def _enveloped(self, p: "FloatArray") -> "NDArray[np.bool_]":
        """Flags as many as at most a share epsilon of them may belong; each row has the share of false flags down to it."""
        delta, epsilon = self.certified.delta or SURE, self.certified.epsilon
        bound = envelope(self.certified.k, p.size, delta, generator=np.random.default_rng(0))
        self.columns["false_share"] = bound.false_discoveries(p)
        cut = bound.widest(p, epsilon)
        if not cut:
            self.said.append(
                f"No cut keeps the share of false flags at {epsilon:g} with probability {1 - delta:g}; the column false_share says what "
                "each would keep."
            )
            return np.zeros(p.size, dtype=np.bool_)
        self.said.append(bound.sentence(p, cut))
        return p <= cut

    def _over_seeds(self, table: "Table", scored: "Rows") -> "Verdicts":
        """A score for each seed: the draws of a detector's score vectors, or the columns of numbers."""
        sign, q = -1 if self.certified.larger_is == "normal" else 1, self.certified.epsilon
        names = number_columns(self.known)
        known, new = (sign * seeds(side, names).T for side in (self.known, taken(table, scored)))
        count = min(len(known), len(new))  # the first draws are the same, however many there are
        if count < 2:
            raise InputError(
                f"--many e-bh needs the scores of two seeds or more for each row, a column each, got {count}. Use --many bh."
            )
        known, new = known[:count], new[:count]
        p = twice_the_mean(np.stack([p_values(*side) for side in zip(known, new, strict=True)], axis=1))
        self.said.append(
            f"Of those flagged, at most {q:g} belong on average (e-BH over {count:,} seeds), and other seeds would change few of the verdicts. "
            "p-values are twice the mean over the seeds. Not promised: as many flags as one seed has by bh."
        )
        return p, stable_discoveries(known, new, q)

    def _stream(self, scores: "FloatArray") -> "Verdicts":
        """Alarms in the order of the rows: each is ranked among the calibration rows and all rows before it."""
        mean_time = 1 / self.certified.epsilon
        p = online_p_values(
            self.certified.strangeness_, self._strange(scores), generator=np.random.default_rng(0)
        )
        alarms = shiryaev_roberts_alarms(p, mean_time=mean_time).alarms
        first = f"; the first comes at row {alarms[0] + 1:,} of those with a score" if alarms.size else ""
        self.said.append(
            f"{alarms.size:,} alarm{'' if alarms.size == 1 else 's'} that the stream has changed (Shiryaev-Roberts){first}. Without a change the "
            f"mean time to an alarm is at least {mean_time:,.4g} rows, from each alarm on. Not promised: that no false alarm ever comes, nor "
            "that a flagged row itself is strange."
        )
        flagged = np.zeros(p.size, dtype=np.bool_)
        flagged[alarms] = True
        return p, flagged

    def _together(self, p: "FloatArray") -> "NDArray[np.bool_]":
        q = self.certified.epsilon
        self.said.append(
            f"Of those flagged, at most {q:g} belong on average (false discovery rate, by {self.many}). Not promised: "
            f"{NOT_PROMISED[self.many]}."
        )
        if self.many == "bh":
            return benjamini_hochberg(p, q)
        if self.many == "storey":
            return storey(p, q, k=self.certified.k)
        return online_discoveries(p, q, self.many)

    def _strange(self, scores: "FloatArray") -> "FloatArray":
        return -self.certified.score_samples(scores)

    def _known(self) -> "FloatArray":
        return self._strange(summed(self.known, self.column, self.draws))

    def _within_groups(self, table: "Table", scores: "FloatArray", scored: "Rows") -> "Verdicts":
        epsilon, delta = self.certified.epsilon, self.certified.delta
        known, asked = self.known.labels(self.groups), table.labels(self.groups)[scored]
        p = mondrian_p_values(self._known(), known, self._strange(scores), asked)
        pooled = self.certified.p_values(scores)
        rates = rates_by_group(pooled, asked, epsilon, p)
        self.said.append(
            f"{reading(rates, epsilon)} Not promised: power in small groups, whose smallest p-value is large."
        )
        sizes = {group: int(np.count_nonzero(known == group)) for group in np.unique(asked)}
        for rate in rates:
            smallest = 1 / (sizes[rate.group] + 1)
            self.said.append(
                f"  {rate.group}: {rate.points:,} new, {rate.pooled:.1%} flagged by one threshold, {rate.within:.1%} within the "
                f"group (k = {sizes[rate.group]:,}, smallest p-value {smallest:.2g})"
            )
        if self.many != "each":
            return p, self._together(p)
        cuts = {
            group: epsilon if delta is None else corrected_epsilon(k, epsilon, delta)
            for group, k in sizes.items()
        }
        return p, p < np.array([cuts[group] for group in asked])

    def _across_folds(self, table: "Table", scored: "Rows") -> "Verdicts":
        fold_of, known = self.known.labels(self.folds), self._known()
        held_out = [known[fold_of == name] for name in self.names]
        new = [self._strange(table.scores(name, empty_is_nan=True)[scored]) for name in self.names]
        p = cross_p_values(held_out, np.stack(new))
        self.said.append(promise([scores.size for scores in held_out], self.certified.epsilon))
        return p, p < self.certified.epsilon

    def _with_outliers(self, table: "Table", scored: "Rows") -> "Verdicts":
        """All columns of numbers, or all draws of a detector, are scores of one sign; the known outliers say where to look."""
        assert self.outliers is not None
        sign, epsilon = -1 if self.certified.larger_is == "normal" else 1, self.certified.epsilon
        names: list[str] = []
        if not has_vectors(self.known):
            title = self.known.titles[self.known.place(self.column)] if self.known.titles else ""
            names = [title, *features(self.known, self.column, "--outliers")]
        sides = [sign * seeds(side, names) for side in (self.known, self.outliers, taken(table, scored))]
        count = min(side.shape[1] for side in sides)
        known, strange, asked = (side[:, :count] for side in sides)
        p = integrative_p_values(known, strange, asked)
        learned, summed = gain(known, strange, epsilon)
        gained = (
            "One alone leaves none to try it on."
            if len(strange) < 2
            else f"Learned from half of them, {learned:.0%} of the other half are flagged, by a plain sum {summed:.0%}."
        )
        self.said.append(
            f"{len(strange):,} known outlier{'s help' if len(strange) > 1 else ' helps'} to read {count} scores; the bound of {epsilon:g} is "
            f"kept. {gained} Not promised: a gain; kinds that are unlike them are found less often than without them."
        )
        return p, p < epsilon

    def _weighted(self, table: "Table", scores: "FloatArray", scored: "Rows") -> "Verdicts":
        """The classifier sees the columns of numbers beside the scores, or, of a detector's score vectors, each score's place."""
        assert self.shifted_to is not None
        epsilon, known, new = self.certified.epsilon, self._known(), self._strange(scores)
        if has_vectors(self.known) and not self.column:
            batch = self._strange(summed(self.shifted_to, "", self.draws))
            seen = [places(known, side) for side in (known, batch, new)]
        else:
            names = features(self.known, self.column, "--shifted-to")
            seen = [matrix(side, names) for side in (self.known, self.shifted_to, taken(table, scored))]
        if len(seen[1]) < FEWEST // 2:
            raise InputError(
                f"{self.shifted_to.name}: weights are learned from its rows: expected at least {FEWEST // 2}, got {len(seen[1])}. Bring more "
                "of the new source."
            )
        weights, new_weights = density_ratio(*seen)
        check_effective(weights, epsilon)
        self.said.append(what_it_costs(weights, epsilon))
        sides = (known, weights, new, new_weights)
        p = weighted_p_values(*sides)
        if self.many == "each":
            return p, p < epsilon
        self.said.append(
            f"Of those flagged, at most {epsilon:g} belong on average (weighted conformal selection)."
        )
        return p, weighted_selection(*sides, epsilon)
