"""Names in sentences: what an input is called, and texts from strangers, made fit for where they go: in a terminal what would move
the cursor or change its colours is shown as code, in a table what a spreadsheet would run as a formula stays a text.

How large a file may be: one truth for reading, for archives, for uploads and for what pages say.
"""

import csv
import io
import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

NOUNS = {"image": "image", "audio": "sound"}
"""What one input of a modality is called."""
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Unicode's groups of control, format, surrogate, private and unassigned characters, and of line breaks."""


def printable(text: str) -> str:
    r"""`text` on one line, with every character that a terminal could obey or hide written as its code.

    >>> printable("caf\u00e9 \x1b[31mred\n.png")
    'café \\x1b[31mred\\n.png'
    """
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in HIDDEN else c for c in text
    )


IMAGE_BYTES = 20 * 2**20
SOUND_BYTES = 50 * 2**20
SOUND_SECONDS = 60
SCORES_BYTES = 64 * 2**20
ARCHIVE_BYTES = 200 * 2**20
"""A zip as it is uploaded."""
UNPACKED_BYTES = 2**30
"""What all archives of an upload together may unpack to."""

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
