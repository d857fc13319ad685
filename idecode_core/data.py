"""Where datasets lie: the data root is an argument, else the variable IDECODE_DATA, else `data/`.

A few small sets that may be passed on are bundled (EMBEDDED), so that library, app and tests work at once.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

EMBEDDED = Path(__file__).parent / "embedded"
CHECKOUT = Path(__file__).resolve().parent.parent
"""What the package lies in: in a checkout the app, the paper and the lessons are beside it."""


def data_root(root: Path | str | None = None) -> Path:
    return Path(root or os.environ.get("IDECODE_DATA") or "data")


def beside_checkout(module: str) -> ModuleType:
    """A module that lies beside the package in a checkout; ImportError where the package is installed without."""
    if (CHECKOUT / module.partition(".")[0]).is_dir() and str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))
    return import_module(module)
