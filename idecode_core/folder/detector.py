"""A detector with its weights, into a folder and back.

A calibration only means something for the scorer that made it, so it carries the scorer's hash (settings and
weights), and loading refuses a mismatch. Nothing here can run code from a folder: no pickle.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from idecode_core.detector import Detector
from idecode_core.device import choose_device
from idecode_core.errors import CheckpointError, SettingError
from idecode_core.files import write_folder
from idecode_core.files.read import DAMAGE, reason
from idecode_core.folder.calibration import read_calibration, write_calibration
from idecode_core.folder.manifest import check_parts, write_listing
from idecode_core.folder.settings import FILES, FORMAT, find_detector, read_settings
from idecode_core.own.model import PREFIX
from idecode_core.scorer import Scorer, build_scorer


def scorer_hash(scorer: Scorer) -> str:
    """A content hash of everything that determines scores: settings and weights."""
    return _hash(scorer.settings(), scorer.tensors())


def _hash(settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name].detach().cpu().contiguous().numpy()
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def compact(tensor: Tensor) -> Tensor:
    """A matrix in half precision, which takes half the room, where that changes nothing (`training.run_state.rounded`)."""
    exact = tensor.dtype == torch.float32 and tensor.dim() > 1 and torch.equal(tensor.half().float(), tensor)
    return tensor.half() if exact else tensor


def restore(tensor: Tensor) -> Tensor:
    """The tensor that `compact` was given."""
    return tensor.float() if tensor.dtype == torch.float16 else tensor


OWN = (
    *(*FILES, "card.md", "training.json", "split.npz", "recipe.json", "log.jsonl", "learning-curve.svg"),
    *("files.csv", "left-out.txt", "report.html"),
    *("scores", "softmax", "plain", "ablations"),
)
"""What belongs to the detector in a folder, and goes with it when another takes its place."""
Writer = Callable[[Path], object]
"""Writes one file at the path that it is given."""


def save_detector(
    detector: Detector,
    folder: Path | str,
    card: str = "",
    beside: Mapping[str, Writer] | None = None,
    choice: str = "",
) -> None:
    """Write a complete new folder beside, then put it in the place of what is there: a killed process leaves the old
    detector or the new one. `beside` are more files by name, such as the training record; `choice` says what was looked
    at while choosing and should not have been."""
    folder = Path(folder)
    check_replaceable(folder)
    try:
        settings = json.loads(json.dumps(detector.scorer.settings()))
        tensors = {
            name: t.detach().cpu().contiguous().clone() for name, t in detector.scorer.tensors().items()
        }
    except (AttributeError, TypeError) as error:
        raise CheckpointError(
            f"A scorer of type {type(detector.scorer).__name__} cannot be saved ({reason(error)}): expected one with "
            f"settings() and tensors(), see idecode_core/scorer.py."
        ) from error
    identity = _hash(settings, tensors)
    config = {
        "format": FORMAT,
        "name": detector.name,
        "summary": detector.summary,
        "modality": detector.scorer.modality,
        "dataset": detector.dataset,
        "k": detector.calibration.k,
        "n_max": detector.calibration.n_max,
        "scorer_sha256": identity,
        "scorer": settings,
        **({"choice": choice} if choice else {}),
    }

    def fill(new: Path) -> None:
        save_file({name: compact(tensor) for name, tensor in tensors.items()}, new / "model.safetensors")
        write_calibration(new, detector.calibration, identity)
        (new / "card.md").write_text(card or default_card(detector), encoding="utf-8")
        for name, write in (beside or {}).items():
            write(new / name)
        take_along(folder, new)
        write_listing(new, config)

    write_folder(folder, fill)


def check_replaceable(folder: Path) -> None:
    """CheckpointError when a folder holds files and no detector: replacing it would lose them."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "config.json").is_file():
        raise CheckpointError(
            f"{folder} holds other files and no detector, so it is not replaced: expected a new or an empty folder, or a "
            "detector's. Choose another."
        )


def take_along(folder: Path, new: Path) -> None:
    """What others put into a detector folder, such as notes, goes into the new one that takes its place."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name not in OWN and not (new / path.name).exists():
            if path.is_dir():
                shutil.copytree(path, new / path.name, symlinks=True)
            else:
                shutil.copy2(path, new / path.name, follow_symlinks=False)


def load_detector(
    folder: Path | str,
    device: str | torch.device | None = None,
    *,
    model: Any = None,
    trust_program: bool = False,
) -> Detector:
    """Rebuild a detector from its folder, or by its name among those that come with the project; on the best device
    unless one is named. Refuses parts that do not belong together.

    A detector that was made around a user's own network (`Detector.around`) needs that network or predict_fn again as
    `model`. A stored torch.export program is only opened with `trust_program`: opening one can run code.
    """
    folder = Path(folder) if Path(folder).is_dir() else find_detector(folder)
    settings = read_settings(folder)
    try:
        tensors = read_tensors(folder)
        identity = _hash(settings.scorer, tensors)
    except (KeyError, TypeError, OSError, SafetensorError, RuntimeError) as error:
        raise CheckpointError(
            f"{folder}: model.safetensors cannot be read as weights ({reason(error)}). Use the folder as it was saved."
        ) from error
    if identity != settings.scorer_sha256:
        raise CheckpointError(
            f"{folder}: model.safetensors or the settings in config.json were changed after saving: expected hash "
            f"{settings.scorer_sha256[:12]}, got {identity[:12]}. Use the folder as it was saved, or calibrate again."
        )
    given = {"model": model, "trust_program": trust_program} if settings.scorer.get("kind") == "own" else {}
    if model is not None and not given:
        raise SettingError(f"{folder} holds a network of its own: leave model= out.")
    try:
        scorer = build_scorer(settings.scorer, tensors, choose_device(device), **given)
    except CheckpointError:
        raise
    except (*DAMAGE, AttributeError) as error:
        raise CheckpointError(
            f"{folder}: config.json and model.safetensors do not fit each other ({reason(error)}). Use the folder as it "
            f"was saved."
        ) from error
    calibration = read_calibration(settings)
    check_parts(settings)
    return Detector(settings.name, scorer, calibration, settings.summary, settings.dataset)


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """The tensors of a folder, as they were given to `save_detector`."""
    return {name: restore(tensor) for name, tensor in load_file(folder / "model.safetensors").items()}


def stored_weights(folder: Path | str) -> dict[str, Tensor]:
    """The weights of a user's own network in a detector folder, for `network.load_state_dict`."""
    found = read_tensors(find_detector(folder))
    return {name.removeprefix(PREFIX): tensor for name, tensor in found.items() if name.startswith(PREFIX)}


def default_card(detector: Detector) -> str:
    return (
        f"# {detector.name}\n\n{detector.summary or 'A detector.'}\n\n"
        f"Calibrated on {detector.calibration.k} points with up to {detector.calibration.n_max} draws each.\n"
    )
