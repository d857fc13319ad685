"""What is kept between runs, keyed by what determines the answer.

Models are shared by all visitors and only read. Nothing that a visitor uploads goes into a shared cache.
torch is imported on first need, so that a page can paint before.
"""

import gc
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from idecode_core.errors import CheckpointError

if TYPE_CHECKING:
    from idecode_core.detector import Detector

FILES = ("config.json", "model.safetensors", "calibration.npz")


def checkpoint_root() -> Path:
    """Where detector folders lie: the variable IDECODE_CHECKPOINTS, else `checkpoints/` beside app.py."""
    return Path(os.environ.get("IDECODE_CHECKPOINTS") or Path(__file__).parent.parent / "checkpoints")


def get_configs() -> dict[str, dict[str, Any]]:
    """Name -> settings of every complete detector folder, with its `folder`; quick, imports no torch."""
    root = checkpoint_root()
    stamps = tuple((str(path), path.stat().st_mtime_ns) for path in sorted(root.glob("*/config.json")))
    configs = _read_configs(stamps)
    if not configs:
        raise CheckpointError(
            f"No detector was found: expected folders with {', '.join(FILES)} below {root}. Run from a complete copy "
            f"of the project, or point IDECODE_CHECKPOINTS to a folder that has some."
        )
    return configs


@st.cache_data(show_spinner=False, max_entries=4)
def _read_configs(stamps: tuple[tuple[str, int], ...]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, _ in stamps:
        folder = Path(name).parent
        try:
            config = json.loads(Path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(config, dict) and all((folder / file).is_file() for file in FILES):
            found[folder.name] = {**config, "folder": str(folder)}
    return found


def get_detector(folder: str | Path) -> "Detector":
    """The detector of a folder, or of that name below the checkpoint root; loaded once for all visitors."""
    path = Path(folder) if Path(folder).is_dir() else checkpoint_root() / folder
    stamp = tuple((path / file).stat().st_mtime_ns for file in FILES if (path / file).exists())
    return _load_detector(str(path), stamp)


@st.cache_resource(show_spinner="Loading the detector ...", max_entries=12)
def _load_detector(folder: str, stamp: tuple[int, ...]) -> "Detector":
    from idecode_core.checkpoint import load_detector

    return load_detector(folder)


@st.cache_resource(show_spinner=False)
def spare_collections(page: str) -> None:
    """Take what a page has loaded for good out of garbage collection; once for each page, not for each visit.

    Streamlit collects garbage twice at every move of a slider. With all of torch and Plotly in view, that takes a
    hundred milliseconds and more, without them less than one.
    """
    gc.collect()
    gc.freeze()


def device_name() -> str | None:
    """The device that detectors run on; None as long as torch has not been needed."""
    if "torch" not in sys.modules:
        return None
    from idecode_core.scoring import choose_device

    return {"cuda": "graphics card (cuda)", "mps": "graphics processor (mps)"}.get(
        choose_device().type, "processor (cpu)"
    )
