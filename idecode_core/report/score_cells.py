"""Notebook cells that bring score vectors back: those stored with a detector, or a visitor's own, inside the notebook."""

import base64
import io
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.report.inspection import calibration_hash

if TYPE_CHECKING:
    from idecode_core.calibration import Calibration


def calibration_cell(folder: str, calibration: "Calibration") -> str:
    """Code that loads a detector's calibration by the folder's name and refuses another one."""
    return f"""\
from idecode_core import load_detector
from idecode_core.report import calibration_hash

folder = Path(os.environ.get("IDECODE_CHECKPOINTS") or home / "checkpoints") / {Path(folder).name!r}
calibration = load_detector(folder).calibration
assert calibration_hash(calibration) == {calibration_hash(calibration)!r}, "another calibration\""""


STORED_SETS = """\
from idecode_core.evaluation import id_and_ood, read_scores

id_set, ood_sets = id_and_ood(read_scores(folder))
print(id_set.label, len(id_set), "against", ", ".join(f"{ood_set.label} {len(ood_set)}" for ood_set in ood_sets))"""


def arrays_cell(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Code that holds arrays in itself, as a compressed npz file in base64; they come back bit for bit."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    lines = textwrap.fill(base64.b64encode(buffer.getvalue()).decode(), 120)
    return f'''\
import base64
import io

import numpy as np

packed = """
{lines}
"""
arrays = np.load(io.BytesIO(base64.b64decode(packed)), allow_pickle=False)
print({{name: arrays[name].shape for name in arrays}})'''
