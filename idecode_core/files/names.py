"""Names in sentences: what an input is called, and names from strangers, made fit for a terminal: what would move the cursor
or change its colours is shown as code."""

import unicodedata

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
