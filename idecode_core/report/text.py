"""A report as CSV (its table, one line per row) and as JSON (all but pictures and figures), at full precision."""

import csv
import io
import json
import math
from typing import Any

from idecode_core import __version__
from idecode_core.files.cells import defused
from idecode_core.report.content import Picture, Report, Row, Value


def to_csv(report: Report) -> str:
    """The table with a header; a column that holds a vector becomes one column per entry: score_1, score_2, ...

    >>> print(to_csv(Report("t", (), {}, ({"name": "a", "score": (0.5, 2.0)},))), end="")
    name,score_1,score_2
    a,0.5,2.0
    """
    rows = [flat_row(row) for row in report.rows]
    text = io.StringIO()
    columns = list(dict.fromkeys(column for row in rows for column in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({column: defused(value) for column, value in row.items()} for row in rows)
    return text.getvalue()


def to_json(report: Report) -> str:
    """Title, sentences, settings and rows. A number that is not finite becomes null: JSON has no word for it."""
    value = {
        "title": report.title,
        "made_with": f"idecode_core {__version__}",
        "sentences": list(report.sentences),
        "settings": {name: plain(value) for name, value in report.settings.items()},
        "rows": [
            {name: plain(value) for name, value in row.items() if not isinstance(value, Picture)}
            for row in report.rows
        ],
    }
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def flat_row(row: Row) -> dict[str, Value]:
    flat: dict[str, Value] = {}
    for name, value in row.items():
        if isinstance(value, tuple):
            flat.update({f"{name}_{i}": entry for i, entry in enumerate(value, start=1)})
        elif not isinstance(value, Picture):
            flat[name] = value
    return flat


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
