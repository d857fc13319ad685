"""Atomic writes: a killed process leaves the old file or folder or the new one, never half of one (design invariant 8)."""

import ctypes
import errno
import glob
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from idecode_core.errors import IdecodeError
from idecode_core.files.read import reason

PART = ".part"
"""The ending of temporary files: no reader's pattern (*.npz, *.json) matches it."""
OLD = ".old"
"""The ending of a folder's former self, for a moment, on systems that cannot exchange two folders."""
STALE = 3600.0  # seconds: a temporary file of that age belongs to no process that still writes
EXCHANGE, HERE = 2, -100  # RENAME_EXCHANGE and AT_FDCWD of Linux


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it over `path`."""
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_stale(path)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
        os.close(handle)
        temporary = Path(name)
        write(temporary)
        temporary.chmod(0o644)  # mkstemp makes files that only their owner can read
        synchronise(temporary)
        temporary.replace(path)
    except (OSError, SafetensorError) as error:  # safetensors reports a full disk by an error of its own
        raise could_not_write(path, error) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_folder(folder: Path, fill: Callable[[Path], object], *, replace: bool = False) -> None:
    """Let `fill` make a complete folder beside `folder`, then give it its name; what is there stays, unless it is empty or to be
    replaced. A detector's folder is written by `folder.place` alone, which knows what may be replaced."""
    temporary: Path | None = None
    above: list[Path] = []  # folders that are made for it
    folder = folder.resolve()  # a link stays a link, and "." has a name
    try:
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "a file is in its place")
        if not replace and folder.exists() and any(folder.iterdir()):
            raise FileExistsError(errno.EEXIST, "it is there already, and is not empty")
        above = [path for path in folder.parents if not path.exists()]
        folder.parent.mkdir(parents=True, exist_ok=True)
        remove_stale(folder)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=PART))
        temporary.chmod(0o755)
        fill(temporary)
        for path in sorted(temporary.rglob("*")):
            synchronise(path)
        synchronise(temporary)
        if not folder.exists() or not replace:
            if folder.exists():
                folder.rmdir()  # refuses one that is not empty
            temporary.rename(folder)
        elif not exchanged(temporary, folder):
            # Two steps where the system cannot exchange; `recovered` puts the old folder back after a kill between them.
            old = folder.with_name(f".{folder.name}{OLD}")
            if is_former(old):
                shutil.rmtree(old)
            folder.rename(old)  # refuses a place where something else is
            temporary.rename(folder)
            shutil.rmtree(old)
        synchronise(folder.parent)
    except (OSError, SafetensorError) as error:
        raise could_not_write(folder, error) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)  # after an exchange this is the old folder
        for path in above:
            with suppress(OSError):  # not empty, as it should be, or never made
                path.rmdir()


def recovered(folder: Path) -> bool:
    """Put the old folder back where a killed process left none; whether there was one."""
    if folder.exists():  # "." too, which has no name
        return False
    old = folder.with_name(f".{folder.name}{OLD}")
    if not is_former(old):
        return False
    try:
        old.rename(folder)
    except OSError:  # another process was quicker, or the disk is read-only
        return folder.exists()
    return True


def is_former(old: Path) -> bool:
    """Whether this is a detector's folder on its way out, and not somebody else's folder of such a name."""
    return (old / "config.json").is_file()


def check_writable(folder: Path) -> None:
    """IdecodeError unless a folder can be made at this place; tried out beside it, so that it is known before any work."""
    beside = next(path for path in folder.absolute().parents if os.path.lexists(path))
    try:
        Path(tempfile.mkdtemp(dir=beside, prefix=f".{folder.name}.", suffix=PART)).rmdir()
    except OSError as error:
        raise could_not_write(folder, error) from error


def check_output(path: Path, inputs: Iterable[Path], mark: str) -> None:
    """IdecodeError unless a file can be written here without a loss: it is new, or of the kind whose first line has `mark`, and no
    input; tried out before any work."""
    try:
        if path.exists():
            with path.open(encoding="utf-8", errors="replace") as file:
                is_ours = not path.stat().st_size or mark in file.readline(10_000)
            if not is_ours or any(source.exists() and path.samefile(source) for source in inputs):
                raise not_ours(path)
    except OSError as error:
        raise could_not_write(path, error) from error
    check_writable(path)


def not_ours(path: Path) -> IdecodeError:
    return IdecodeError(
        f"{path} is there already and is not from this command, so it is not replaced. Choose another file for --out."
    )


def exchanged(a: Path, b: Path) -> bool:
    """Swap two folders in one step, where the system can (Linux)."""
    if not sys.platform.startswith("linux"):
        return False
    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    return swap is not None and swap(HERE, os.fsencode(a), HERE, os.fsencode(b), EXCHANGE) == 0


def synchronise(path: Path) -> None:
    """Have the system write a file or folder to the disk now, so that a rename never arrives before its content."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # some systems do not open folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_stale(path: Path) -> None:
    """Remove what killed processes left beside `path`."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*{PART}"):
        try:
            if time.time() - left.stat().st_mtime > STALE:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        except OSError:
            continue


def could_not_write(path: Path, error: BaseException) -> IdecodeError:
    return IdecodeError(
        f"Could not write {path}: {reason(error)}. Nothing was changed; free some space or choose another folder, then try again."
    )


def write_bytes(path: Path, data: bytes) -> None:
    write_atomically(path, lambda temporary: temporary.write_bytes(data))


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2) + "\n")


def write_npz(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    write_atomically(path, write)
