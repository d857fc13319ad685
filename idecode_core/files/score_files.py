"""Score vectors from a user's own file: CSV, npy or npz, one row per point, one column per draw."""

import io

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import InputError, ScoreError
from idecode_core.files.archives import File
from idecode_core.files.read import DAMAGE, check_header, read_arrays, reason

EXTENSIONS = (".csv", ".npy", ".npz")
MAX_SCORES = 20_000_000


def read_score_vectors(file: File) -> NDArray[np.float64]:
    """Score vectors (N, n) of one file. A single column is one draw per point; a CSV may have a line of titles."""
    name = file.name
    ending = name.lower()[name.rfind(".") :]
    if not file.data:
        raise InputError(f"{name}: is empty; expected one row of scores per point. Export it again.")
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
    lines = filled_lines(file)
    comma = ";" if lines and ";" in lines[0] else ","
    if lines and not is_number(lines[0].split(comma)[0]):
        lines = lines[1:]  # titles
    if not lines:
        raise InputError(
            f"{file.name}: holds no scores; expected one row of numbers per point. Export it again."
        )
    try:
        return np.loadtxt(lines, delimiter=comma, ndmin=2)
    except ValueError as error:
        reason = str(error).split(";")[0].rstrip(".")
        raise InputError(
            f"{file.name}: cannot be read as rows of numbers of equal length ({reason}). Mend that row."
        ) from None


def filled_lines(file: File) -> list[str]:
    """The lines of a text file that hold anything."""
    try:
        return [line for line in file.data.decode("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise InputError(
            f"{file.name}: is not text; expected a CSV file in UTF-8. Export it again."
        ) from None


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_numpy(file: File) -> NDArray[np.generic]:
    if file.name.lower().endswith(".npy"):
        return _read_npy(file)
    arrays = read_arrays(
        file.data,
        what="an array",
        error=InputError,
        hint="Save it again.",
        name=file.name,
        most_bytes=8 * MAX_SCORES,
    )
    chosen = "score_vectors" if "score_vectors" in arrays else next(iter(arrays)) if len(arrays) == 1 else ""
    if not chosen:
        raise InputError(
            f"{file.name}: holds the arrays {', '.join(arrays) or 'none'}; expected one, or one called score_vectors. "
            "Save it again with that name."
        )
    return arrays[chosen]


def _read_npy(file: File) -> NDArray[np.generic]:
    try:
        check_header(
            io.BytesIO(file.data), file.name, len(file.data)
        )  # before NumPy makes room for what it declares
        return np.asarray(np.load(io.BytesIO(file.data), allow_pickle=False))
    except DAMAGE as damage:
        raise InputError(
            f"{file.name} cannot be read as an array: {reason(damage)}. Save it again."
        ) from None
