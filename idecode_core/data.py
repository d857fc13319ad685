"""Where datasets lie: the data root is an argument, else the variable IDECODE_DATA, else `data/`.

A few small sets that may be passed on are bundled (EMBEDDED), so that library, app and tests work at once.
"""

import os
from pathlib import Path

EMBEDDED = Path(__file__).parent / "embedded"


def data_root(root: Path | str | None = None) -> Path:
    return Path(root or os.environ.get("IDECODE_DATA") or "data")
