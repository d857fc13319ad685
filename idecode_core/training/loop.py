"""The one training loop: resumable, seeded, on one device or under torchrun, for whatever task it is given.

Every random choice of epoch e comes from (recipe seed, e), and every epoch ends with an atomic checkpoint, so a killed
run that is resumed ends with the same weights as an unbroken one.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from idecode_core.errors import TrainingError
from idecode_core.files import write_npz
from idecode_core.models.pieces import one_sentence
from idecode_core.training.optimiser import make_optimizer, rate_factor, update_average
from idecode_core.training.run_state import (
    BEST,
    STATE,
    EpochLog,
    RunState,
    kept_epoch,
    load_weights,
    read_log,
    save_weights,
    write_log,
)
from idecode_core.training.tasks import Task
from idecode_core.training.tasks.task import Answer, steps_per_epoch
from idecode_core.training.world import World

SMALLER = (
    "Close other programs that use it, use a recipe with a smaller batch, or several devices under torchrun; finished epochs are "
    "kept, and the run goes on from there."
)
ProgressHook = Callable[[int, int, int, float], None]
"""Called after each step with (epoch, step, steps, loss)."""


class Gradients(nn.Module):
    """The task's loss as a module's forward, which is what DistributedDataParallel can wrap."""

    def __init__(self, task: Task, model: nn.Module) -> None:
        super().__init__()
        self.task, self.model = task, model

    def forward(self, *batch: Any) -> Answer:
        return self.task.loss(self.model, *batch)


class Tally:
    """Mean loss and accuracy of the batches so far; both None before the first, accuracy also where M names nothing."""

    def __init__(self) -> None:
        self.loss = self.points = self.right = self.answers = 0.0

    def add(self, points: int, loss: float, right: torch.Tensor | None) -> None:
        self.loss, self.points = self.loss + loss * points, self.points + points
        if right is not None:
            self.right, self.answers = self.right + int(right.sum()), self.answers + right.numel()

    @property
    def mean_loss(self) -> float | None:
        return self.loss / self.points if self.points else None

    @property
    def accuracy(self) -> float | None:
        return self.right / self.answers if self.answers else None


@torch.inference_mode()
def validate(task: Task, model: nn.Module) -> Tally:
    """On the validation part, with the same draws in every epoch."""
    model.eval()
    tally = Tally()
    for batch in task.validation():
        loss, right = task.loss(model, *batch)
        tally.add(len(batch[0]), loss.item(), right)
    return tally


def train(
    task: Task,
    folder: Path,
    *,
    epochs: int | None = None,
    resume: bool = True,
    progress: ProgressHook | None = None,
) -> nn.Module:
    """Train M in `folder` and return the model of the epoch that was kept.

    The folder gets split.npz (indices), state.safetensors (to resume), best.safetensors, log.jsonl.
    """
    recipe, world = task.recipe, World.join()
    epochs = epochs or recipe.epochs
    model = task.initialise()
    average = task.blank().to(task.device)
    average.load_state_dict(model.state_dict())
    optimizer = make_optimizer(recipe, model)
    base_rates = [group["lr"] for group in optimizer.param_groups]
    state = RunState(recipe, epochs, model, average, optimizer)
    start, log = 0, list[EpochLog]()
    if resume and (folder / STATE).exists():
        start = state.load(folder)
        log = read_log(folder)[:start]
    elif world.is_first:
        write_npz(folder / "split.npz", vars(task.parts.split))

    gradients: nn.Module = Gradients(task, model)
    if world.size > 1:
        gradients = nn.parallel.DistributedDataParallel(gradients)
    steps = steps_per_epoch(task)
    for epoch in range(start, epochs):
        began, tally = time.monotonic(), Tally()
        model.train()
        with torch.random.fork_rng(), one_sentence(task.device, SMALLER):
            for step, batch in enumerate(task.batches(epoch, world)):
                done = epoch * steps + step
                for group, rate in zip(optimizer.param_groups, base_rates, strict=True):
                    group["lr"] = rate * rate_factor(recipe.schedule, epoch, done / (epochs * steps))
                loss, right = gradients(*batch)
                if not torch.isfinite(loss):
                    intact = (
                        f"The checkpoint of epoch {epoch} is intact in {folder}; lower" if epoch else "Lower"
                    )
                    raise TrainingError(
                        f"The loss became {loss.item()} in epoch {epoch + 1}, step {step + 1} of {recipe.name}: expected "
                        f"a finite number. {intact} the learning rate."
                    )
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                update_average(average, model, min(recipe.ema, (done + 1) / (done + 11)))
                tally.add(1, loss.item(), right)
                if progress is not None:
                    progress(epoch, step, steps, tally.loss / tally.points)
        found = validate(task, average)
        seconds = time.monotonic() - began
        log.append(
            EpochLog(epoch, tally.loss / steps, seconds, tally.accuracy, found.mean_loss, found.accuracy)
        )
        if world.is_first:
            if kept_epoch(log) is log[-1]:
                save_weights(folder / BEST, average)
            write_log(folder, log)
            state.save(folder, epoch + 1)
    if world.size > 1:
        torch.distributed.barrier()  # the first process writes the best weights; the others wait for them
    return load_weights(folder / BEST, task.blank()).to(task.device).eval()
