"""A detector with its weights, into a folder and back.

A calibration only means something for the scorer that made it, so it carries the scorer's hash (settings and
weights), and loading refuses a mismatch. Nothing here can run code from a folder: no pickle.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from idecode_core.detector import UNNAMED, Detector
from idecode_core.device import choose_device
from idecode_core.errors import CheckpointError, SettingError
from idecode_core.files.read import DAMAGE, check_safetensors, reason
from idecode_core.folder.manifest import check_parts, read_calibration, write_calibration, write_listing
from idecode_core.folder.place import check_place, write_detector_folder
from idecode_core.folder.settings import FORMAT, WITH_COPIES, find_detector, read_settings
from idecode_core.scorer import Scorer, build_scorer
from idecode_core.scorers.call_network import PREFIX, imported_network


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


COPIES = "copies"
"""In the head of model.safetensors: which tensors are copies of which."""
LARGE, MOST_COPIES = 10_000, 1_000
"""Numbers in a tensor that is worth storing once only; copies that a stranger's file may name."""


def without_copies(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors to store, and by name which of them another one is: members of a merged detector may ask one network."""
    first: dict[tuple[Any, ...], str] = {}
    stored, copies = {}, {}
    for name, tensor in tensors.items():
        content = (tensor.dtype, tensor.shape, hashlib.sha256(tensor.numpy().tobytes()).digest())
        if tensor.numel() >= LARGE and content in first:
            copies[name] = first[content]
        else:
            stored[name] = tensor
            first.setdefault(content, name)
    return stored, copies


Writer = Callable[[Path], object]
"""Writes one file at the path that it is given."""


def save_detector(
    detector: Detector,
    folder: Path | str,
    card: str = "",
    beside: Mapping[str, Writer] | None = None,
    selection_leak: str = "",
    replace: bool = True,
) -> None:
    """Write a complete new folder beside, then put it in the place of a detector that is there, unless `replace` is False; files
    that are not the detector's stay (`folder.place`). `beside` are more files by name, such as the training record;
    `selection_leak` says what was looked at while choosing and should not have been."""
    folder = Path(folder)
    check_place(folder, replace=replace)
    if detector.name == UNNAMED and detector.scorer.kind == "own":
        detector = changed(detector, name=folder.name)
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
    stored, copies = without_copies({name: compact(tensor) for name, tensor in tensors.items()})
    config = {
        "format": WITH_COPIES if copies else FORMAT,
        "name": detector.name,
        "summary": detector.summary,
        "modality": detector.scorer.modality,
        "dataset": detector.dataset,
        "k": detector.calibration.k,
        "n_max": detector.calibration.n_max,
        "scorer_sha256": identity,
        "scorer": settings,
        **({"choice": selection_leak} if selection_leak else {}),
    }

    def fill(new: Path) -> None:
        save_file(stored, new / "model.safetensors", {COPIES: json.dumps(copies)} if copies else None)
        write_calibration(new, detector.calibration, identity)
        (new / "card.md").write_text(card or default_card(detector), encoding="utf-8")
        for name, write in (beside or {}).items():
            write(new / name)
        write_listing(new, config)

    write_detector_folder(folder, fill, replace=replace)


def load_detector(
    folder: Path | str,
    device: str | torch.device | None = None,
    *,
    model: Any = None,
    predict_fn: Any = None,
    trust_program: bool = False,
) -> Detector:
    """Rebuild a detector from its folder, or by its name among those that come with the project; on the best device
    unless one is named. Refuses parts that do not belong together.

    A detector that was made around a user's own network (`Detector.around`) needs that network as `model`, or its
    `predict_fn`, again; "module:function" names one to import, which runs its code. A stored torch.export program is only opened with `trust_program`: opening one can run code.
    """
    if model is not None and predict_fn is not None:
        raise SettingError(
            "Give either the network as model= or a predict_fn=, as it was calibrated, and not both."
        )
    model = predict_fn if model is None else model
    folder = Path(folder) if Path(folder).is_dir() else find_detector(folder)
    settings = read_settings(folder)
    try:
        tensors = read_tensors(folder)
        identity = _hash(settings.scorer, tensors)
    except (KeyError, TypeError, ValueError, OSError, SafetensorError, RuntimeError) as error:
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
        raise SettingError(f"{folder} holds a network of its own: leave model= and predict_fn= out.")
    if isinstance(model, str):
        given["model"] = imported_network(model)
    chosen = choose_device(device)  # what is wrong with it is no fault of the folder
    try:
        scorer = build_scorer(settings.scorer, tensors, chosen, **given)
    except CheckpointError:
        raise
    except (*DAMAGE, AttributeError) as error:
        if isinstance(error.__cause__, ImportError):
            raise  # its words name the package that is missing; the folder is sound
        raise CheckpointError(
            f"{folder}: config.json and model.safetensors do not fit each other ({reason(error)}). Use the folder as it "
            f"was saved."
        ) from error
    if scorer.modality != settings.modality:
        raise CheckpointError(
            f"{folder}: config.json says {settings.modality}, and its scorer takes {scorer.modality}. Use the folder as it was "
            "saved."
        )
    calibration = read_calibration(settings)
    check_parts(settings)
    return Detector(settings.name, scorer, calibration, settings.summary, settings.dataset)


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """The tensors of a folder, as they were given to `save_detector`."""
    path = folder / "model.safetensors"
    check_safetensors(path)
    with safe_open(path, framework="pt") as file:
        copies = dict[str, str](json.loads((file.metadata() or {}).get(COPIES, "{}")))
    if len(copies) > MOST_COPIES:
        raise ValueError(
            f"it has {len(copies):,} copies of tensors, more than the {MOST_COPIES:,} that are allowed"
        )
    tensors = {name: restore(tensor) for name, tensor in load_file(path).items()}
    return tensors | {name: tensors[original] for name, original in copies.items()}


def stored_weights(folder: Path | str) -> dict[str, Tensor]:
    """The weights of a user's own network in a detector folder, for `network.load_state_dict`."""
    tensors = read_tensors(find_detector(folder))
    return {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items() if name.startswith(PREFIX)}


def default_card(detector: Detector) -> str:
    return (
        f"# {detector.name}\n\n{detector.summary or 'A detector.'}\n\n"
        f"Calibrated on {detector.calibration.k} points with up to {detector.calibration.n_max} draws each.\n"
    )
