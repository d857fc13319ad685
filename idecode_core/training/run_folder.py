"""Where a run keeps what is done: a folder that is named by all that determines the run, and that one training uses at a time."""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from idecode_core.draws import content_hash
from idecode_core.errors import TrainingError
from idecode_core.files import write_text
from idecode_core.files.write import could_not_write
from idecode_core.training.run_state import World
from idecode_core.training.tasks import Task
from idecode_core.training.user_files import contents_of

LOCK, HOLDER = "lock", "held-by.txt"


def run_folder(runs: Path, name: str, work: Mapping[str, Any]) -> Path:
    """`work` is all that determines what the run makes, ready for JSON: no two runs of different work share a folder."""
    text = json.dumps(work, sort_keys=True)
    return runs / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def recipe_work(task: Task, epochs: int) -> dict[str, Any]:
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
