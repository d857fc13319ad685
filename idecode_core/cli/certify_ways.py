"""How `certify` judges new rows: each alone, within its group, weighted for a source that has shifted, or many together."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal import p_values
from idecode_core.conformal.conditional import corrected_epsilon
from idecode_core.conformal.cross import cross_p_values, promise
from idecode_core.conformal.evidence import derandomised_e_values, e_benjamini_hochberg, envelope
from idecode_core.conformal.groups import mondrian_p_values, rates_by_group, reading
from idecode_core.conformal.integrative import gain, integrative_p_values
from idecode_core.conformal.merging import twice_the_mean
from idecode_core.conformal.multiple import benjamini_hochberg, storey
from idecode_core.conformal.online import PROCEDURES, check_order, online_discoveries
from idecode_core.conformal.weighted import (
    check_effective,
    density_ratio,
    weighted_p_values,
    weighted_selection,
    what_it_costs,
)
from idecode_core.errors import IdecodeError, InputError, SettingError

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray
    from idecode_core.conformal.certify import Certified
    from idecode_core.files.tables import Table

    Verdicts = tuple[FloatArray, NDArray[np.bool_]]
    Rows = NDArray[np.int64]

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
        if self.time and self.many not in PROCEDURES:
            raise SettingError(
                f"--time goes with --many {', '.join(PROCEDURES)}, which judge a row by those before it; for {self.many} the order does not "
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

    def judge(self, table: "Table", scores: "FloatArray", scored: "Rows") -> "Verdicts":
        """p-values and flags of the rows `scored`, by the scores of all rows of the user's table."""
        if self.time:
            place = table.place(self.time)
            check_order(table.columns[place].to_pylist(), table.first_line)
        if self.many == "e-bh":
            return self._over_seeds(table, scored)
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
        known, new = (sign * _seeds(side, names).T for side in (self.known, _taken(table, scored)))
        seeds = min(len(known), len(new))  # the first draws are the same, however many there are
        if seeds < 2:
            raise InputError(
                f"--many e-bh needs the scores of two seeds or more for each row, a column each, got {seeds}. Use --many bh."
            )
        known, new = known[:seeds], new[:seeds]
        p = twice_the_mean(np.stack([p_values(*side) for side in zip(known, new, strict=True)], axis=1))
        self.said.append(
            f"Of those flagged, at most {q:g} belong on average (e-BH over {seeds:,} seeds), and other seeds would change few of the verdicts. "
            "p-values are twice the mean over the seeds. Not promised: as many flags as one seed has by bh."
        )
        return p, e_benjamini_hochberg(derandomised_e_values(known, new, q / 2), q)

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

    def _within_groups(self, table: "Table", scores: "FloatArray", scored: "Rows") -> "Verdicts":
        epsilon, delta = self.certified.epsilon, self.certified.delta
        known, asked = self.known.labels(self.groups), table.labels(self.groups)[scored]
        p = mondrian_p_values(
            self._strange(self.known.scores(self.column)), known, self._strange(scores), asked
        )
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
        fold_of, known = self.known.labels(self.folds), self._strange(self.known.scores(self.column))
        held_out = [known[fold_of == name] for name in self.names]
        new = [self._strange(table.scores(name, empty_is_nan=True)[scored]) for name in self.names]
        p = cross_p_values(held_out, np.stack(new))
        self.said.append(promise([scores.size for scores in held_out], self.certified.epsilon))
        return p, p < self.certified.epsilon

    def _with_outliers(self, table: "Table", scored: "Rows") -> "Verdicts":
        """All columns of numbers are scores of one sign; the known outliers say where to look."""
        assert self.outliers is not None
        sign, epsilon = -1 if self.certified.larger_is == "normal" else 1, self.certified.epsilon
        title = self.known.titles[self.known.place(self.column)] if self.known.titles else ""
        names = [title, *_features(self.known, self.column, "--outliers")]
        known, strange = (sign * _matrix(side, names) for side in (self.known, self.outliers))
        p = integrative_p_values(known, strange, sign * _matrix(table, names)[scored])
        learned, summed = gain(known, strange, epsilon)
        self.said.append(
            f"{len(strange):,} known outliers help to read {len(names)} scores; the bound of {epsilon:g} is kept. Learned from half of them, "
            f"{learned:.0%} of the other half are flagged, by a plain sum {summed:.0%}. Not promised: a gain; kinds that are unlike them are "
            "found less often than without them."
        )
        return p, p < epsilon

    def _weighted(self, table: "Table", scores: "FloatArray", scored: "Rows") -> "Verdicts":
        assert self.shifted_to is not None
        epsilon = self.certified.epsilon
        names = _features(self.known, self.column)
        features = [_matrix(side, names) for side in (self.known, self.shifted_to)]
        weights, new_weights = density_ratio(*features, _matrix(table, names)[scored])
        check_effective(weights, epsilon)
        self.said.append(what_it_costs(weights, epsilon))
        sides = (self._strange(self.known.scores(self.column)), weights, self._strange(scores), new_weights)
        p = weighted_p_values(*sides)
        if self.many == "each":
            return p, p < epsilon
        self.said.append(
            f"Of those flagged, at most {epsilon:g} belong on average (weighted conformal selection)."
        )
        return p, weighted_selection(*sides, epsilon)


def number_columns(table: "Table") -> list[str]:
    """The columns of numbers, by title or number; those of a user's table, where it has titles."""
    names = []
    for i, title in enumerate(table.titles or range(1, len(table.columns) + 1)):
        try:
            table.scores(str(title) or str(i + 1))
        except IdecodeError:
            continue
        names.append(str(title))
    return names


def _seeds(table: "Table", names: list[str]) -> "FloatArray":
    """Scores (rows, seeds)."""
    if "score_vector" in table.titles or not table.titles:
        return table.vectors()
    return _matrix(table, names)


def _taken(table: "Table", rows: "Rows") -> "Table":
    return replace(table, columns=[cells.take(rows) for cells in table.columns])


def _features(table: "Table", column: str, option: str = "--shifted-to") -> list[str]:
    """The columns of numbers beside the scores."""
    score = table.place(column)
    names = [title for title in number_columns(table) if table.titles and table.place(title) != score]
    if not names:
        raise InputError(
            f"{table.name}: {option} needs columns of numbers beside the scores, with titles. Got none."
        )
    return names


def _matrix(table: "Table", names: list[str]) -> "FloatArray":
    return np.stack([table.scores(name) for name in names], axis=1)
