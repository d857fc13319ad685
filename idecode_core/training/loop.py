"""The one training loop: resumable, seeded, on one device or under torchrun, for whatever task it is given.

Every random choice of epoch e comes from (recipe seed, e), and every epoch ends with an atomic checkpoint, so a killed
run that is resumed ends with the same weights as an unbroken one.

How a step changes the weights: optimisers, learning rates, the moving average.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, conv_flop_count

from idecode_core.errors import TrainingError
from idecode_core.files import write_npz
from idecode_core.folder.record import EpochLog, kept_epoch, read_log, write_log
from idecode_core.models.pieces import one_sentence
from idecode_core.training.recipe import Recipe
from idecode_core.training.run_state import BEST, STATE, RunState, World, load_weights, save_weights
from idecode_core.training.tasks import Task
from idecode_core.training.tasks.task import Answer, steps_per_epoch

FASTEST_AT = 0.2  # of the whole training, under one_cycle


def make_optimizer(recipe: Recipe[Any], model: nn.Module) -> torch.optim.Optimizer:
    """SGD with momentum, Adam (decay in the gradient) or AdamW (decay apart); a log-variance head has its own rate, and so
    have the biases of norms where the recipe says so. Frozen weights are left out."""
    faster = recipe.norm_bias_rate
    rates = {
        "other": recipe.learning_rate,
        "variance_head": recipe.head_learning_rate or recipe.learning_rate,
        "norm_bias": recipe.learning_rate * faster,
    }
    biases = {id(norm.bias) for norm in model.modules() if isinstance(norm, nn.BatchNorm2d) and faster != 1}

    def kind_of(name: str, weight: nn.Parameter) -> str:
        head = "variance_head" if name.startswith("variance_head.") else "other"
        return "norm_bias" if id(weight) in biases else head

    named = [
        (kind_of(name, weight), weight) for name, weight in model.named_parameters() if weight.requires_grad
    ]
    groups: list[dict[str, Any]] = [
        {"params": [weight for other, weight in named if other == kind], "lr": rate}
        for kind, rate in rates.items()
    ]
    groups[-1]["weight_decay"] = recipe.weight_decay / faster
    groups = [group for group in groups if group["params"]]
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(groups, momentum=0.9, nesterov=True, weight_decay=recipe.weight_decay)
    kind = torch.optim.Adam if recipe.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, weight_decay=recipe.weight_decay)


def rate_factor(schedule: str, epoch: int, progress: float) -> float:
    """What the learning rate is multiplied by, in an epoch (from 0) and after a share of all steps.

    One cycle: linear rise over the first fifth, linear fall to almost nothing. Steps: times 0.9 every two epochs (App.
    C.2).
    """
    if schedule == "constant":
        return 1.0
    if schedule == "steps":
        return float(0.9 ** (epoch // 2))
    rising = 0.1 + 0.9 * progress / FASTEST_AT
    return rising if progress < FASTEST_AT else max(0.002, (1 - progress) / (1 - FASTEST_AT))


@torch.no_grad()
def update_average(average: nn.Module, model: nn.Module, decay: float) -> None:
    """Exponential moving average of weights and running statistics."""
    for mean, value in zip(average.state_dict().values(), model.state_dict().values(), strict=True):
        if mean.dtype.is_floating_point:
            mean.lerp_(value, 1 - decay)
        else:
            mean.copy_(value)


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


def convolution_backward_flop(
    grad_shape: Any, x_shape: Any, w_shape: Any, *rest: Any, out_shape: Any = None, **named: Any
) -> int:
    """Of both gradients of a convolution: each takes what the convolution took. Torch counts every channel against every other, also
    where each channel has a filter of its own."""
    transposed, output_mask = rest[4], rest[7]
    return int(conv_flop_count(x_shape, w_shape, grad_shape, transposed=transposed) * sum(output_mask[:2]))


def training_pflop(task: Task, epochs: int) -> float:
    """10^15 floating-point operations of all training steps: those of one step, as torch counts them (forward and backward;
    a multiplication and an addition are two), times how many there are. Validation is left out."""
    model = task.initialise().train()
    corrected = {torch.ops.aten.convolution_backward: convolution_backward_flop}
    with torch.random.fork_rng(), FlopCounterMode(display=False, custom_mapping=corrected) as counter:
        loss, _ = task.loss(model, *next(iter(task.batches(0, World()))))
        loss.backward()
    return float(f"{counter.get_total_flops() * steps_per_epoch(task) * epochs / 1e15:.4g}")


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
        outcome = validate(task, average)
        seconds = time.monotonic() - began
        log.append(
            EpochLog(epoch, tally.loss / steps, seconds, tally.accuracy, outcome.mean_loss, outcome.accuracy)
        )
        if world.is_first:
            if kept_epoch(log) is log[-1]:
                save_weights(folder / BEST, average)
            write_log(folder, log)
            state.save(folder, epoch + 1)
    if world.size > 1:
        torch.distributed.barrier()  # the first process writes the best weights; the others wait for them
    return load_weights(folder / BEST, task.blank()).to(task.device).eval()
