"""One reader for npz files and one for JSON: whatever is wrong with a file becomes one sentence.

Sizes that a file declares are checked before anything is unpacked, and nothing is ever unpickled.
"""

import errno
import io
import json
import lzma
import mmap
import os
import re
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import IdecodeError

MOST_BYTES = 2**28
"""What the arrays of one file may take in memory, unless the caller says otherwise: scores of more than a million points."""
DATASET_BYTES = 2**34
"""The same for a dataset that a user has put there."""
FLOAT64 = 8  # bytes
MOST_ARRAYS = 1_000
"""In one npz file."""
MOST_HEADER = 2**21
"""Bytes of a safetensors header: some 20,000 tensors, and our largest detector has 700. A million of them take minutes."""
MOST_JSON_BYTES = 16 * 2**20
ENTRY = b"PK\x01\x02"
"""How the entry of each member begins in a zip's table of contents."""
# What NumPy, zipfile and json raise on damaged, cut, locked or hostile files, found by trying.
DAMAGE = (
    LookupError,
    ValueError,
    TypeError,
    OSError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    MemoryError,
    RecursionError,
    SyntaxError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    tokenize.TokenError,
    struct.error,
)


ERROR_NUMBER = re.compile(r"(?:errno|os error) (\d+)", re.IGNORECASE)
"""As shutil, safetensors and Arrow write it among many other words, for a full disk, say."""


def reason(error: BaseException) -> str:
    """An error in a few words."""
    words = getattr(error, "strerror", None) or str(error)
    if number := ERROR_NUMBER.search(str(words)):
        return os.strerror(int(number[1]))
    return str(words).splitlines()[0] if words else type(error).__name__


def regular_size(path: Path) -> int:
    """The size of a plain file; OSError for devices, pipes and folders, which may never end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a plain file")
    return status.st_size


def read_at_most(path: Path, most: int) -> bytes:
    """The bytes of a plain file, one more than `most` at the most: some files say that they are short and never end."""
    regular_size(path)
    with path.open("rb") as file:
        return file.read(most + 1)


def read_arrays(
    source: Path | bytes,
    names: Iterable[str] | None = None,
    *,
    what: str,
    error: type[IdecodeError],
    hint: str,
    name: str = "",
    most_bytes: int | None = None,
) -> dict[str, NDArray[Any]]:
    """The arrays of an npz file by name; all of them, or at least those that are named.

    `error` is raised with one sentence: the file (`name` where it has no path), that it is not `what`, why, and the `hint`.
    """
    name = name or str(source)
    try:
        with open_npz(source) as archive:
            check_declared_sizes(archive, MOST_BYTES if most_bytes is None else most_bytes)
        with np.load(
            source if isinstance(source, Path) else io.BytesIO(source), allow_pickle=False
        ) as arrays:
            missing = [array for array in names or () if array not in arrays]
            if missing:
                raise KeyError(f"no array is called {missing[0]}")
            return {key: np.asarray(arrays[key]) for key in arrays.files}
    except DAMAGE as damage:
        words = damage.args[0] if isinstance(damage, KeyError) and damage.args else reason(damage)
        raise error(f"{name} cannot be read as {what}: {words}. {hint}") from damage


def declared_shape(path: Path, name: str) -> tuple[int, ...]:
    """The shape of one array of an npz file, from its header alone; anything of DAMAGE when it cannot be read."""
    with open_npz(path) as archive, archive.open(f"{name}.npy") as file:
        return read_header(file)[0]


def open_npz(source: Path | bytes) -> zipfile.ZipFile:
    """The zip that an npz file is; ValueError when it holds far more than arrays. Each entry takes time and memory: a
    million of them fit into 50 MB."""
    if isinstance(source, Path) and not regular_size(source):  # a pipe would wait for ever
        raise zipfile.BadZipFile("the file is empty")
    if count_entries(source, MOST_ARRAYS) > MOST_ARRAYS:
        raise ValueError(f"it holds more than {MOST_ARRAYS:,} files")
    return zipfile.ZipFile(source if isinstance(source, Path) else io.BytesIO(source))


def count_entries(source: Path | bytes, most: int) -> int:
    """How many members a zip has at the most, up to one more than `most`; from its bytes, before they are taken apart."""
    if isinstance(source, bytes):
        return source.count(ENTRY)
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return sum(1 for _ in islice(re.finditer(ENTRY, content), most + 1))


def check_declared_sizes(archive: zipfile.ZipFile, most_bytes: int) -> None:
    """ValueError when the arrays of an npz would take more memory than allowed; reads their headers only."""
    number = 1 if most_bytes >= DATASET_BYTES else FLOAT64  # pictures stay small, scores become float64
    total = 0
    for member in archive.infolist():
        with archive.open(member) as file:
            total += check_header(file, member.filename, member.file_size, number)
    if total > most_bytes:
        raise ValueError(f"it unpacks to {total:,} bytes, more than the {most_bytes:,} that are allowed")


def check_safetensors(path: Path) -> None:
    """ValueError when the list of tensors is too long to be taken apart."""
    regular_size(path)
    with path.open("rb") as file:
        listed = int.from_bytes(file.read(8), "little")
    if listed > MOST_HEADER:
        raise ValueError(
            f"its list of tensors has {listed:,} bytes, more than the {MOST_HEADER:,} that are allowed"
        )


def check_header(file: IO[bytes], name: str, held: int, number: int = FLOAT64) -> int:
    """How many bytes an array will take with at least `number` for each entry; ValueError when it declares more than the
    `held` ones, or when it holds objects."""
    shape, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError(f"{name} holds objects, which are never loaded")
    entries = 1
    for length in shape:  # Python integers: a product of int64 could wrap
        entries *= int(length)
    if (declared := entries * int(dtype.itemsize)) > held:
        raise ValueError(f"{name} declares {declared:,} bytes and holds {held:,}")
    return max(declared, entries * number)


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type that an array declares."""
    old = np.lib.format.read_magic(file) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def read_json(path: Path, *, what: str, error: type[IdecodeError], hint: str) -> Any:
    """The value of a JSON file; `error` with one sentence when it cannot be read."""
    try:
        if regular_size(path) > MOST_JSON_BYTES:
            raise ValueError(f"it has more than {MOST_JSON_BYTES // 2**20} MB")
        return json.loads(path.read_text(encoding="utf-8"))
    except DAMAGE as damage:
        raise error(f"{path} cannot be read as {what}: {reason(damage)}. {hint}") from damage
