"""Cells of tables: which are numbers, and which a spreadsheet would run as a formula."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a formula begins with, in the usual and in the full width."""
INVISIBLE = " \t\r\n\0\ufeff"


def is_number(cell: str, decimal_comma: bool = True) -> bool:
    """Whether a cell is a number, with a decimal comma unless the column has points.

    >>> is_number("-3e-2"), is_number("1,64"), is_number("1,234.5"), is_number("draw 1")
    (True, True, False, False)
    """
    try:
        float(cell.replace(",", ".") if decimal_comma and "." not in cell else cell)
    except ValueError:
        return False
    return "_" not in cell


def defused(value: Any) -> Any:
    r"""A text, each line of which that a spreadsheet would run as a formula has a leading ' that makes it a text; numbers stay
    numbers. Line breaks become \n, which csv writers quote: a lone \r would begin a new row.

    >>> defused("=HYPERLINK(A1)"), defused("-1 and more"), defused(-1.0), defused("a\r=1")
    ("'=HYPERLINK(A1)", "'-1 and more", -1.0, "a\n'=1")
    """
    if not isinstance(value, str):
        return value
    lines = value.splitlines() or [""]
    return "\n".join(f"'{line}" if line.lstrip(INVISIBLE)[:1] in FORMULA else line for line in lines)


def csv_text(rows: Sequence[Mapping[str, Any]], titles: bool = True) -> str:
    """Rows of equal columns as CSV; no title and no text in them can become a formula, and a text that is a number stays one.
    Lists and tables are JSON in their cell."""

    def cell(value: Any) -> Any:
        if isinstance(value, list | dict):
            return json.dumps(value)
        return value if isinstance(value, str) and is_number(value) else defused(value)

    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    if titles:
        table.writerow([defused(title) for title in rows[0]])
    table.writerows([cell(value) for value in row.values()] for row in rows)
    return text.getvalue()
