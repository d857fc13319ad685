"""A training run on disk: a folder that is named by all that determines the run, and that one training uses at a time; weights,
their average and the optimiser's state as safetensors. No pickle.

This process among those that torchrun started.
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from idecode_core.draws import content_hash
from idecode_core.errors import CheckpointError, TrainingError
from idecode_core.files import write_atomically, write_text
from idecode_core.files.read import reason
from idecode_core.files.write import could_not_write
from idecode_core.training.recipe import Recipe
from idecode_core.training.user_files import contents_of

if TYPE_CHECKING:
    from idecode_core.training.tasks import Task

LOCK, HOLDER = "lock", "held-by.txt"
STATE, BEST = "state.safetensors", "best.safetensors"
M = TypeVar("M", bound=nn.Module)


@torch.no_grad()
def rounded(model: M) -> M:
    """M with its convolutions and matrices at half precision, so that they can be stored in half the room. Scores are
    computed in single precision, before and after saving alike."""
    for weight in model.parameters():
        if weight.dim() > 1:
            weight.copy_(weight.half())
    return model


def save_weights(path: Path, model: nn.Module) -> None:
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    write_atomically(path, lambda temporary: save_file(tensors, temporary))


def load_weights(path: Path, model: M) -> M:
    try:
        model.load_state_dict(load_file(path))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise CheckpointError(
            f"{path} does not hold the weights of this model: {str(error).splitlines()[0]}. Use the folder as it was "
            f"saved, or train again."
        ) from error
    return model


@dataclass(frozen=True, eq=False)
class RunState:
    """Everything that an epoch changes, with what tells whether a run may go on."""

    recipe: Recipe[Any]
    epochs: int
    model: nn.Module
    average: nn.Module
    optimizer: torch.optim.Optimizer

    def save(self, folder: Path, done: int) -> None:
        """Everything needed to go on after epoch `done`."""
        tensors: dict[str, Tensor] = {}
        for part, module in (("model", self.model), ("average", self.average)):
            tensors |= {f"{part}.{name}": value for name, value in module.state_dict().items()}
        for index, entries in self.optimizer.state_dict()["state"].items():
            tensors |= {
                f"optimizer.{index}.{key}": value
                for key, value in entries.items()
                if isinstance(value, Tensor)
            }
        tensors = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
        metadata = {"recipe": repr(self.recipe), "epochs": str(self.epochs), "done": str(done)}
        write_atomically(folder / STATE, lambda temporary: save_file(tensors, temporary, metadata=metadata))

    def load(self, folder: Path) -> int:
        """Restore a run; returns how many epochs are done. Refuses the state of another recipe or length."""
        try:
            with safe_open(folder / STATE, framework="pt") as file:
                metadata = dict(file.metadata() or {})
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise CheckpointError(
                f"{folder / STATE} cannot be read as the state of a run: {error}. Start with --no-resume."
            ) from error
        if (metadata.get("recipe"), metadata.get("epochs")) != (repr(self.recipe), str(self.epochs)):
            raise TrainingError(
                f"{folder} holds an unfinished run of another recipe or of another number of epochs than "
                f"{self.recipe.name} with {self.epochs}: expected the same. Start with --no-resume, or choose another "
                f"folder."
            )
        try:
            return self._restore(tensors, metadata["done"])
        except (KeyError, ValueError, RuntimeError) as error:
            raise CheckpointError(
                f"{folder / STATE} is not the whole state of a run: {reason(error)}. Start with --no-resume."
            ) from error

    def _restore(self, tensors: Mapping[str, Tensor], done: str) -> int:
        for part, module in (("model.", self.model), ("average.", self.average)):
            module.load_state_dict(
                {name.removeprefix(part): t for name, t in tensors.items() if name.startswith(part)}
            )
        entries: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("optimizer."):
                _, index, key = name.split(".", 2)
                entries.setdefault(int(index), {})[key] = value
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": entries, "param_groups": groups})
        return int(done)


@dataclass(frozen=True)
class World:
    rank: int = 0
    size: int = 1

    @staticmethod
    def join() -> "World":
        """Meet the other processes; alone without torchrun."""
        if "RANK" not in os.environ:
            return World()
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        return World(torch.distributed.get_rank(), torch.distributed.get_world_size())

    def leave(self) -> None:
        """Part from the others, all at the same time: one that ends while others still talk to it takes them down."""
        if self.size > 1:
            torch.distributed.barrier()
            torch.distributed.destroy_process_group()

    @property
    def is_first(self) -> bool:
        """The one that writes files and speaks to the user."""
        return self.rank == 0


def run_folder(runs: Path, name: str, work: Mapping[str, Any]) -> Path:
    """`work` is all that determines what the run makes, ready for JSON: no two runs of different work share a folder."""
    text = json.dumps(work, sort_keys=True)
    return runs / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def recipe_work(task: "Task", epochs: int) -> dict[str, Any]:
    """What determines a run by a recipe: its settings, its data, and what it starts from."""
    recipe, parts = task.recipe, task.parts
    work = {"recipe": recipe.settings(), "epochs": epochs}
    for name in ("training", "validation", "calibration"):
        part = getattr(parts, name)
        work[name] = [fingerprint(part.samples), content_hash(part.y)]
    config = Path(getattr(recipe.shows, "start_from", "")) / "config.json"
    if config.is_file():  # else the training says what it misses
        work["start"] = hashlib.sha256(config.read_bytes()).hexdigest()
    return work


def fingerprint(samples: Any) -> str:
    """A hash of the content of pictures or sounds, in their order."""
    return hashlib.sha256("\n".join(contents_of(samples)).encode()).hexdigest()


@contextmanager
def held(folder: Path, world: World) -> Iterator[None]:
    """The folder for this training alone. Of the processes under torchrun the first one takes the lock, for all of them; the
    system takes it back from a process that ends, however it ends."""
    lock = FileLock(folder / LOCK)
    if world.is_first:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            raise TrainingError(
                f"{folder} is in use by {holder(folder)}, which does the same training: expected one at a time. Wait until it "
                "is done, or choose another --out."
            ) from None
        except OSError as error:
            raise could_not_write(folder / LOCK, error) from error
    try:
        if world.is_first:
            write_text(folder / HOLDER, f"process {os.getpid()} on {platform.node()}")
        if world.size > 1:
            torch.distributed.barrier()
            if not world.is_first and not is_held(folder):
                raise TrainingError(
                    "The processes of this training read different data: expected the same files in all of them. Let the "
                    "files rest, and start again."
                )
        yield
    finally:
        lock.release()


def holder(folder: Path) -> str:
    """Who holds a folder, as far as that is known."""
    try:
        return (folder / HOLDER).read_text(encoding="utf-8")
    except OSError:
        return "another process"


def is_held(folder: Path) -> bool:
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except Timeout:
        return True
