"""The columns of a user's table: which hold numbers, which are scores of several draws or seeds, and verdicts beside all of them."""

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import IdecodeError, InputError

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray
    from idecode_core.files.tables import Table

VECTOR = "score_vector"
"""The column that `score` and `detect` write: a score for each draw."""


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


def has_vectors(table: "Table") -> bool:
    """Whether its rows are score vectors of a detector: what `score` writes, or a detector's calibration.npz."""
    return VECTOR in table.titles or (not table.titles and len(table.columns) > 1)


def seeds(table: "Table", names: list[str]) -> "FloatArray":
    """Scores (rows, seeds)."""
    return table.vectors() if has_vectors(table) else matrix(table, names)


def common_draws(*tables: "Table | None") -> int:
    """As many draws as all tables of score vectors have; 0 where there is none. The first draws are the same, however many there are."""
    counts = [0 if table is None or not has_vectors(table) else _draws(table) for table in tables]
    return min((count for count in counts if count), default=0)


def _draws(table: "Table") -> int:
    if VECTOR not in table.titles:
        return len(table.columns)
    return next((len(row) for row in table.columns[table.titles.index(VECTOR)].to_pylist() if row), 0)


def summed(table: "Table", column: str = "", draws: int = 0) -> "FloatArray":
    """One score per row: the named or only column; of score vectors the sum of the first draws. Rows without one are NaN."""
    if column or not has_vectors(table):
        return table.scores(column, empty_is_nan=True)
    if VECTOR not in table.titles:
        return np.asarray(table.vectors()[:, :draws].sum(axis=1))
    there = np.array([row is not None for row in table.columns[table.titles.index(VECTOR)].to_pylist()])
    scores = np.full(len(there), np.nan)
    if there.any():
        scores[there] = taken(table, np.flatnonzero(there)).vectors()[:, :draws].sum(axis=1)
    return scores


def taken(table: "Table", rows: NDArray[np.int64]) -> "Table":
    return replace(table, columns=[cells.take(rows) for cells in table.columns])


def features(table: "Table", column: str, option: str) -> list[str]:
    """The columns of numbers beside the scores."""
    score = table.place(column)
    names = [title for title in number_columns(table) if table.titles and table.place(title) != score]
    if not names:
        raise InputError(
            f"{table.name}: {option} needs columns of numbers beside the scores, with titles and a finite number in each row. Got none. "
            "Fill in what is empty, NaN or infinite, or name other columns."
        )
    return names


def matrix(table: "Table", names: list[str]) -> "FloatArray":
    return np.stack([table.scores(name) for name in names], axis=1)


def with_verdicts(
    table: "Table", place: int, scores: "FloatArray", added: Mapping[str, NDArray[Any]]
) -> list[dict[str, Any]]:
    """The rows of the table, in their order and with all their columns, and what is said of those that have a score."""
    said = {name: values.tolist() for name, values in added.items()}
    scored = np.flatnonzero(~np.isnan(scores)).tolist()
    verdicts = dict(zip(scored, zip(*said.values(), strict=True), strict=True))
    nothing = (None,) * len(said)
    titles = table.titles or tuple(f"column {i + 1}" for i in range(len(table.columns)))
    names: list[str] = []
    for i, title in enumerate(titles):
        name = before(title or f"column {i + 1}", said)
        if i == place and (not table.titles or name != titles[i]):
            name = "score"
        names.append(f"{name} (column {i + 1})" if name in names else name)
    cells = [values.to_pylist() for values in table.columns]
    cells[place] = [score if i in verdicts else None for i, score in enumerate(scores.tolist())]
    return [
        {**dict(zip(names, row, strict=True)), **dict(zip(said, verdicts.get(i, nothing), strict=True))}
        for i, row in enumerate(zip(*cells, strict=True))
    ]


def before(title: str, taken: Container[str]) -> str:
    """The title of a column of the user's, which never stands in the way of one that is added."""
    return f"{title}_before" if title in taken else title
