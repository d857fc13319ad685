"""Score vectors from a user's own file: CSV, npy or npz, one row a point, one column a draw."""

import io
import zipfile

import numpy as np
from numpy.typing import NDArray

from idecode_core.archives import File
from idecode_core.conformal import FloatArray
from idecode_core.errors import InputError, ScoreError

EXTENSIONS = (".csv", ".npy", ".npz")
MAX_SCORES = 20_000_000


def read_score_vectors(file: File) -> FloatArray:
    """Score vectors (N, n) of one file. A single column is one draw a point; a CSV may have a line of titles."""
    name = file.name
    ending = name.lower()[name.rfind(".") :]
    if not file.data:
        raise InputError(f"{name}: is empty; expected one row of scores a point. Export it again.")
    if ending == ".csv":
        vectors = _read_csv(file)
    elif ending in (".npy", ".npz"):
        vectors = _read_numpy(file)
    else:
        raise InputError(
            f"{name}: is of another type; expected {', '.join(EXTENSIONS)}. Export the scores as CSV."
        )
    if vectors.ndim == 1:
        vectors = vectors[:, None]
    if vectors.ndim != 2 or vectors.size == 0:
        raise ScoreError(f"{name}: has shape {vectors.shape}; expected (points, draws). Reshape it first.")
    if not np.issubdtype(vectors.dtype, np.number) or np.issubdtype(vectors.dtype, np.complexfloating):
        raise ScoreError(f"{name}: holds {vectors.dtype}; expected numbers. Export the scores only.")
    bad = int(np.count_nonzero(~np.isfinite(vectors)))
    if bad:
        raise ScoreError(
            f"{name}: {bad} of {vectors.size} scores are missing, NaN or infinite. Remove or mend them."
        )
    return vectors.astype(np.float64)


def _read_csv(file: File) -> NDArray[np.generic]:
    try:
        lines = [line for line in file.data.decode("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise InputError(
            f"{file.name}: is not text; expected a CSV file in UTF-8. Export it again."
        ) from None
    comma = ";" if lines and ";" in lines[0] else ","
    if lines and not _is_number(lines[0].split(comma)[0]):
        lines = lines[1:]  # titles
    if not lines:
        raise InputError(
            f"{file.name}: holds no scores; expected one row of numbers a point. Export it again."
        )
    try:
        return np.loadtxt(lines, delimiter=comma, ndmin=2)
    except ValueError as error:
        reason = str(error).split(";")[0].rstrip(".")
        raise InputError(
            f"{file.name}: cannot be read as rows of numbers of equal length ({reason}). Mend that row."
        ) from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_numpy(file: File) -> NDArray[np.generic]:
    try:
        if file.name.lower().endswith(".npz"):
            # The sizes that an npz declares are checked before anything is unpacked: it is a zip.
            with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
                if sum(member.file_size for member in archive.infolist()) > 8 * MAX_SCORES:
                    raise InputError(
                        f"{file.name}: unpacks to more than {MAX_SCORES:,} scores. Make it smaller."
                    )
        loaded = np.load(io.BytesIO(file.data), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            names = list(loaded.files)
            chosen = "score_vectors" if "score_vectors" in names else names[0] if len(names) == 1 else ""
            if not chosen:
                raise InputError(
                    f"{file.name}: holds the arrays {', '.join(names) or 'none'}; expected one, or one called "
                    "score_vectors. Save it again with that name."
                )
            return np.asarray(loaded[chosen])
    except InputError:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{file.name}: cannot be read as an array ({reason}). Save it again.") from None
