"""A detector as a folder: config.json, model.safetensors, calibration.npz, card.md.

A calibration only means something for the scorer that made it, so it carries the scorer's hash (settings and
weights), and loading refuses a mismatch. Nothing here can run code from a checkpoint: no pickle.
"""

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from idecode_core.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, IdecodeError
from idecode_core.files import write_atomically, write_json, write_npz, write_text
from idecode_core.scorer_config import Settings, build_scorer, scorer_settings, scorer_tensors
from idecode_core.scoring import Scorer, choose_device

FORMAT = 1
FILES = ("config.json", "model.safetensors", "calibration.npz")
CHECKPOINTS = Path(__file__).resolve().parent.parent / "checkpoints"
"""Detectors that come with the project."""


def scorer_hash(scorer: Scorer) -> str:
    """A content hash of everything that determines scores: settings and weights."""
    return _hash(scorer_settings(scorer), scorer_tensors(scorer))


def _hash(settings: Settings, tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name].detach().cpu().contiguous().numpy()
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def compact(tensor: Tensor) -> Tensor:
    """A matrix in half precision, which takes half the room, where that changes nothing (`training_finish.rounded`)."""
    exact = tensor.dtype == torch.float32 and tensor.dim() > 1 and torch.equal(tensor.half().float(), tensor)
    return tensor.half() if exact else tensor


def restore(tensor: Tensor) -> Tensor:
    """The tensor that `compact` was given."""
    return tensor.float() if tensor.dtype == torch.float16 else tensor


def save_detector(detector: Detector, folder: Path | str, card: str = "") -> None:
    """Write the folder, each file atomically; config.json comes last, so a half-written folder does not load."""
    folder = Path(folder)
    settings = json.loads(json.dumps(scorer_settings(detector.scorer)))
    tensors = {
        name: t.detach().cpu().contiguous().clone() for name, t in scorer_tensors(detector.scorer).items()
    }
    identity = _hash(settings, tensors)
    calibration = {
        "score_vectors": detector.calibration.score_vectors,
        "seed": np.array(detector.calibration.seed),
        "scorer": np.array(identity),
    }
    stored = {name: compact(tensor) for name, tensor in tensors.items()}
    write_atomically(folder / "model.safetensors", lambda path: save_file(stored, path))
    write_npz(folder / "calibration.npz", calibration)
    write_text(folder / "card.md", card or default_card(detector))
    config = {
        "format": FORMAT,
        "name": detector.name,
        "summary": detector.summary,
        "modality": detector.scorer.modality,
        "k": detector.calibration.k,
        "n_max": detector.calibration.n_max,
        "scorer_sha256": identity,
        "scorer": settings,
    }
    write_json(folder / "config.json", config)


def load_detector(folder: Path | str, device: str | torch.device | None = None) -> Detector:
    """Rebuild a detector, on the best device unless one is named. Refuses parts that do not belong together."""
    folder = Path(folder)
    config = read_config(folder)
    try:
        tensors = {name: restore(tensor) for name, tensor in load_file(folder / "model.safetensors").items()}
        identity = _hash(config["scorer"], tensors)
    except (KeyError, TypeError, OSError, SafetensorError, RuntimeError) as error:
        raise CheckpointError(
            f"{folder}: model.safetensors cannot be read as weights ({_reason(error)}). Use the folder as it was saved."
        ) from error
    if identity != config.get("scorer_sha256"):
        raise CheckpointError(
            f"{folder}: model.safetensors or the settings in config.json were changed after saving: expected hash "
            f"{str(config.get('scorer_sha256'))[:12]}, got {identity[:12]}. Use the folder as it was saved, or calibrate anew."
        )
    device = choose_device(device)
    try:
        scorer = build_scorer(config["scorer"], tensors, device)
    except (KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise CheckpointError(
            f"{folder}: config.json and model.safetensors do not fit each other ({_reason(error)}). Use the folder as it "
            f"was saved."
        ) from error
    name, summary = str(config.get("name", folder.name)), str(config.get("summary", ""))
    return Detector(name, scorer, read_calibration(folder, identity), summary)


def _reason(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def read_config(folder: Path | str) -> dict[str, Any]:
    """config.json of a detector folder; quick, loads no weights."""
    folder = Path(folder)
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise CheckpointError(
            f"{folder} is not a detector folder: expected {', '.join(FILES)}, missing {', '.join(missing)}. "
            f"Choose a folder that save_detector or `train` has written."
        )
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if not isinstance(config, dict) or config["format"] != FORMAT:
            raise KeyError("format")
    except (ValueError, KeyError, OSError, RecursionError) as error:
        raise CheckpointError(
            f"{folder / 'config.json'} cannot be read as a detector's settings of format {FORMAT}: {error}. Use the folder "
            f"as it was saved, or update this program."
        ) from error
    return config


def read_calibration(folder: Path, identity: str) -> Calibration:
    """calibration.npz, only if it was made with the scorer of this hash."""
    path = folder / "calibration.npz"
    try:
        with np.load(path, allow_pickle=False) as arrays:
            made_with, seed = str(arrays["scorer"]), int(arrays["seed"])
            vectors = arrays["score_vectors"]
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path} cannot be read as a calibration: {error}. Calibrate anew.") from error
    if made_with != identity:
        raise CheckpointError(
            f"{path} was made with other weights or settings: expected scorer {identity[:12]}, got {made_with[:12]}. "
            f"Its p-values would mean nothing; calibrate anew."
        )
    try:
        return Calibration(vectors, seed)
    except IdecodeError as error:
        raise CheckpointError(f"{path}: {error}") from error


def default_card(detector: Detector) -> str:
    return (
        f"# {detector.name}\n\n{detector.summary or 'A detector.'}\n\n"
        f"Calibrated on {detector.calibration.k} points with up to {detector.calibration.n_max} draws each.\n"
    )


def find_detector(name: Path | str) -> Path:
    """A detector folder: as given, or by its name among those that come with the project, from any directory."""
    for folder in (Path(name), CHECKPOINTS / name, CHECKPOINTS.parent / name):
        if (folder / "config.json").is_file():
            return folder
    known = (
        ", ".join(sorted(path.parent.name for path in CHECKPOINTS.glob("*/config.json"))) or "none is here"
    )
    raise CheckpointError(
        f"No detector is called {name}: expected a detector folder, or one of: {known}. Check the name, or make one "
        f"with `train` or `calibrate`."
    )


def list_detectors(root: Path | str = "checkpoints") -> list[dict[str, Any]]:
    """The settings of every detector folder below root, with their `folder`; quick, loads no weights."""
    found = []
    for path in sorted(Path(root).glob("*/config.json")):
        try:
            found.append({**read_config(path.parent), "folder": str(path.parent)})
        except CheckpointError:
            continue  # a half-written folder is not a detector yet
    return found


__all__ = ["find_detector", "list_detectors", "load_detector", "read_config", "save_detector", "scorer_hash"]
