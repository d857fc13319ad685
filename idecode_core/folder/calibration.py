"""calibration.npz: the score vectors of the calibration set, tied by hash to the scorer that made them."""

from pathlib import Path

import numpy as np

from idecode_core.conformal.calibration import Calibration
from idecode_core.errors import CheckpointError, IdecodeError
from idecode_core.files import write_npz
from idecode_core.files.read import read_arrays
from idecode_core.folder.manifest import check_file, check_made_with
from idecode_core.folder.settings import FolderSettings

NAME = "calibration.npz"


def write_calibration(folder: Path, calibration: Calibration, scorer_sha256: str) -> None:
    arrays = {
        "score_vectors": calibration.score_vectors,
        "seed": np.array(calibration.seed),
        "scorer": np.array(scorer_sha256),
    }
    write_npz(folder / NAME, arrays)


def read_calibration(settings: FolderSettings) -> Calibration:
    """The calibration of a folder, only if it was made with its scorer and is the one that was saved."""
    path = settings.folder / NAME
    arrays = read_arrays(
        path,
        ("score_vectors", "seed", "scorer"),
        what="a calibration",
        error=CheckpointError,
        hint="Calibrate again.",
    )
    again = "Its p-values would mean nothing; calibrate again."
    check_made_with(path, str(arrays["scorer"]), settings.scorer_sha256, again)
    check_file(settings, NAME)
    try:
        calibration = Calibration(arrays["score_vectors"], int(arrays["seed"]))
    except (IdecodeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    if (calibration.k, calibration.n_max) != (settings.k, settings.n_max):
        raise CheckpointError(
            f"{path} holds {calibration.k:,} points with {calibration.n_max} draws, and config.json says {settings.k:,} with "
            f"{settings.n_max}: they do not belong together. Use the folder as it was saved."
        )
    return calibration
