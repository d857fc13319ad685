"""Cells of CSV files: names come from strangers, and a spreadsheet would run some of them as formulas."""

from typing import Any

FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a formula begins with, in the usual and in the full width."""
INVISIBLE = " \t\r\n\0\ufeff"


def defused(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula, with a leading ' that makes it a text; numbers stay numbers.

    >>> defused("=HYPERLINK(A1)"), defused("-1 and more"), defused(-1.0)
    ("'=HYPERLINK(A1)", "'-1 and more", -1.0)
    """
    return f"'{value}" if isinstance(value, str) and value.lstrip(INVISIBLE)[:1] in FORMULA else value
