"""Atomic writes: a killed process leaves the old file or the new one, never half of one (design invariant 8)."""

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from idecode_core.errors import IdecodeError


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it over `path`."""
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
        os.close(handle)
        temporary = Path(name)
        write(temporary)
        temporary.chmod(0o644)  # mkstemp makes files that only their owner can read
        temporary.replace(path)
    except (OSError, SafetensorError) as error:  # safetensors reports a full disk by an error of its own
        reason = getattr(error, "strerror", None) or error
        raise IdecodeError(
            f"Could not write {path}: {reason}. Nothing was changed; free some space or choose another folder, then "
            f"try again."
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2) + "\n")


def write_npz(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    write_atomically(path, write)
