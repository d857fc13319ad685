"""One column of scores from a user's file: CSV with or without titles, npy or npz. One row per point."""

import csv
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import InputError, ScoreError
from idecode_core.files.archives import File
from idecode_core.files.score_files import filled_lines, is_number, read_score_vectors

USUAL = ("score", "scores", "anomaly_score", "decision_scores")
"""A column of this name is taken when several are there and none was named."""


def read_scores(file: File, column: str = "") -> NDArray[np.float64]:
    """Scores (count,) of the column with this title or number (from 1); of the only one, or the usual one, when left out."""
    if not file.name.lower().endswith(".csv"):
        vectors = read_score_vectors(file)
        names = [str(i + 1) for i in range(vectors.shape[1])]
        return vectors[:, _place(file.name, names, column)]
    lines = filled_lines(file)
    if not lines:
        raise InputError(f"{file.name}: is empty; expected one row per point. Export it again.")
    separator = next((mark for mark in (";", "\t") if mark in lines[0]), ",")
    cells = next(csv.reader(lines[:1], delimiter=separator))
    has_titles = not all(is_number(cell) for cell in cells if cell.strip()) or not any(map(str.strip, cells))
    names = [cell.strip() for cell in cells] if has_titles else [str(i + 1) for i in range(len(cells))]
    place = _place(file.name, names, column)
    if has_titles:
        lines = lines[1:]
    if not lines:
        raise InputError(
            f"{file.name}: holds titles and no scores; expected one row per point. Export it again."
        )
    try:
        scores = np.loadtxt(lines, delimiter=separator, usecols=place, quotechar='"', comments=None, ndmin=1)
    except ValueError as error:
        reason = str(error).split(";")[0].rstrip(".")
        raise InputError(
            f"{file.name}: the column {names[place] or place + 1} cannot be read as numbers ({reason}). Mend that row, or name "
            "another column."
        ) from None
    bad = int(np.count_nonzero(~np.isfinite(scores)))
    if bad:
        raise ScoreError(
            f"{file.name}: {bad} of {scores.size} scores are NaN or infinite. Remove or mend them."
        )
    return np.asarray(scores, dtype=np.float64)


def _place(name: str, names: Sequence[str], column: str) -> int:
    if column and column in names:
        return list(names).index(column)
    if column.isdecimal() and 1 <= int(column) <= len(names):
        return int(column) - 1
    listed = ", ".join(title or f"(column {i + 1})" for i, title in enumerate(names))
    if column:
        raise InputError(f"{name}: has no column {column!r}; expected one of: {listed}.")
    if len(names) == 1:
        return 0
    usual = [i for i, title in enumerate(names) if title.lower() in USUAL]
    if len(usual) == 1:
        return usual[0]
    raise InputError(
        f"{name}: has {len(names)} columns ({listed}). Say which one holds the scores, by its title or number."
    )
