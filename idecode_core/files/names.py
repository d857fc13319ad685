"""Names in sentences: what an input is called, and names from strangers, made fit for a terminal: what would move the cursor
or change its colours is shown as code.

How large a file may be: one truth for reading, for archives, for uploads and for what pages say.
"""

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


IMAGE_BYTES = 20 * 2**20
SOUND_BYTES = 50 * 2**20
SOUND_SECONDS = 60
SCORES_BYTES = 64 * 2**20
ARCHIVE_BYTES = 200 * 2**20
"""A zip as it is uploaded."""
UNPACKED_BYTES = 2**30
"""What all archives of an upload together may unpack to."""
