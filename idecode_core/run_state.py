"""A training run on disk: weights, their average and the optimiser's state as safetensors. No pickle."""

import json
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from idecode_core.errors import CheckpointError, TrainingError
from idecode_core.files import write_atomically


class NamedRecipe(Protocol):
    """A recipe of any kind: its text (repr) tells whether a run may go on."""

    @property
    def name(self) -> str: ...


def save_weights(path: Path, model: nn.Module) -> None:
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    write_atomically(path, lambda temporary: save_file(tensors, temporary))


def load_weights(path: Path, model: nn.Module) -> None:
    try:
        model.load_state_dict(load_file(path))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise CheckpointError(
            f"{path} does not hold the weights of this model: {str(error).splitlines()[0]}. Use the folder as it was "
            f"saved, or train anew."
        ) from error


def save_state(
    path: Path,
    recipe: NamedRecipe,
    epochs: int,
    done: int,
    model: nn.Module,
    average: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> None:
    """Everything needed to go on after epoch `done`."""
    tensors: dict[str, Tensor] = {}
    for part, module in (("model", model), ("average", average)):
        tensors |= {f"{part}.{name}": value for name, value in module.state_dict().items()}
    for index, entries in optimizer.state_dict()["state"].items():
        tensors |= {
            f"optimizer.{index}.{key}": value for key, value in entries.items() if isinstance(value, Tensor)
        }
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    metadata = {"recipe": repr(recipe), "epochs": json.dumps(epochs), "done": json.dumps(done)}
    write_atomically(path, lambda temporary: save_file(tensors, temporary, metadata=metadata))


def load_state(
    path: Path,
    recipe: NamedRecipe,
    epochs: int,
    model: nn.Module,
    average: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> int:
    """Restore a run; returns how many epochs are done. Refuses the state of another recipe or length."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if metadata["recipe"] != repr(recipe) or metadata["epochs"] != json.dumps(epochs):
        raise TrainingError(
            f"{path.parent} holds an unfinished run of another recipe or of another number of epochs than "
            f"{recipe.name} with {epochs}: expected the same. Start with --no-resume, or choose another folder."
        )
    for part, module in (("model", model), ("average", average)):
        prefix = f"{part}."
        module.load_state_dict(
            {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
        )
    state = optimizer.state_dict()
    entries: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".", 2)
            entries.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict({"state": entries, "param_groups": state["param_groups"]})
    return int(json.loads(metadata["done"]))
