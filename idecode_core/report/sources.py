"""Notebook cells that bring back what a page had: a detector, its calibration and stored scores, or a visitor's numbers.

A detector is found by its folder's name, and hashes make sure that it is the one of the page.
"""

import base64
import hashlib
import io
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from idecode_core.conformal.calibration import Calibration


def calibration_hash(calibration: "Calibration") -> str:
    """A hash of the calibration's score vectors: the same scorer calibrated again gives other p-values."""
    return hashlib.sha256(calibration.score_vectors.tobytes()).hexdigest()


def stored_cell(folder: str, calibration: "Calibration") -> str:
    """Code that reads a detector's stored scores, and its calibration in their precision; no network is loaded."""
    return f"""\
from idecode_core.folder.settings import find_detector
from idecode_core.folder.stored import open_stored
from idecode_core.report import calibration_hash

stored = open_stored(find_detector({Path(folder).name!r}))
calibration, id_set, ood_sets = stored.calibration, stored.id_set, stored.ood_sets
assert calibration_hash(calibration) == {calibration_hash(calibration)!r}, "another calibration"
print(id_set.label, len(id_set), "against", ", ".join(f"{{ood_set.label}} {{len(ood_set)}}" for ood_set in ood_sets))"""


def calibration_cell(folder: str, calibration: "Calibration") -> str:
    """Code that reads a detector's calibration as it is, for scores that were made on the page; no network is loaded."""
    return f"""\
from idecode_core.folder.calibration import read_calibration
from idecode_core.folder.settings import find_detector, read_settings
from idecode_core.report import calibration_hash

calibration = read_calibration(read_settings(find_detector({Path(folder).name!r})))
assert calibration_hash(calibration) == {calibration_hash(calibration)!r}, "another calibration\""""


def packed(data: bytes) -> str:
    """Bytes as base64 in lines that a reader can scroll past."""
    return textwrap.fill(base64.b64encode(data).decode(), 120)


def arrays_cell(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Code that holds arrays in itself, as a compressed npz file in base64; they come back bit for bit."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return f'''\
import base64
import io

import numpy as np

packed = """
{packed(buffer.getvalue())}
"""
arrays = np.load(io.BytesIO(base64.b64decode(packed)), allow_pickle=False)
print({{name: arrays[name].shape for name in arrays}})'''
