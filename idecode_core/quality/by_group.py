"""The rate of each group of iD points beside the pooled one: of a detector's stored test scores, or of a user's table; no model."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from idecode_core.conformal.calibration import aggregate_scores
from idecode_core.conformal.groups import GroupRate, mondrian_p_values, rates_by_group
from idecode_core.conformal.judge import judge
from idecode_core.conformal.observed import ObservedRate, counted_rate
from idecode_core.folder.record import labels_by_part
from idecode_core.folder.stored import Stored

if TYPE_CHECKING:
    from idecode_core.files.tables import Table

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
