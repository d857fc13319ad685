"""One training loop for all recipes: resumable, seeded, on one device or under torchrun.

Every random choice of epoch e comes from a generator seeded by (recipe seed, e), and every epoch ends with an
atomic checkpoint, so a killed run that is resumed ends with the same weights as an unbroken one.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from idecode_core.checkpoint import load_detector
from idecode_core.data import ImageSet, Split, load_images, split_indices
from idecode_core.errors import TrainingError
from idecode_core.files import write_npz, write_text
from idecode_core.images import Preprocessing
from idecode_core.models import Equivariant, blank_model
from idecode_core.models.backbones import Compact
from idecode_core.models.pretrained import EfficientNetLite0
from idecode_core.recipes import Recipe
from idecode_core.run_state import load_state, load_weights, save_state, save_weights
from idecode_core.scoring import ImageScorer
from idecode_core.tasks import Task, augment

EVALUATION_BATCH = 512


@dataclass(frozen=True)
class EpochLog:
    """One line of a run's log."""

    epoch: int
    loss: float
    validation_loss: float
    validation_accuracy: float | None
    seconds: float


ProgressHook = Callable[[int, int, int, float], None]
"""Called after each step with (epoch, step, steps, loss)."""


def make_optimizer(recipe: Recipe, model: Equivariant) -> torch.optim.Optimizer:
    head = {id(p) for p in model.variance_head.parameters()} if model.config.variance else set()
    groups = [
        {"params": [p for p in model.parameters() if id(p) not in head], "lr": recipe.learning_rate},
        {
            "params": [p for p in model.parameters() if id(p) in head],
            "lr": recipe.head_learning_rate or recipe.learning_rate,
        },
    ]
    groups = [g for g in groups if g["params"]]
    if recipe.optimizer == "adam":
        return torch.optim.Adam(groups, weight_decay=recipe.weight_decay)
    return torch.optim.SGD(groups, momentum=0.9, nesterov=True, weight_decay=recipe.weight_decay)


def learning_rate_factor(recipe: Recipe, progress: float) -> float:
    """One cycle: linear rise over the first fifth, linear fall to almost nothing; or constant."""
    if recipe.schedule == "constant":
        return 1.0
    rise = 0.2
    return 0.1 + 0.9 * progress / rise if progress < rise else max(0.002, (1 - progress) / (1 - rise))


@torch.no_grad()
def update_average(average: nn.Module, model: nn.Module, decay: float) -> None:
    """Exponential moving average of weights and running statistics."""
    for mean, value in zip(average.state_dict().values(), model.state_dict().values(), strict=True):
        if mean.dtype.is_floating_point:
            mean.lerp_(value, 1 - decay)
        else:
            mean.copy_(value)


@dataclass(frozen=True)
class Distributed:
    """This process among those that torchrun started; alone without it."""

    rank: int = 0
    size: int = 1

    @staticmethod
    def start() -> "Distributed":
        if "RANK" not in os.environ:
            return Distributed()
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        return Distributed(torch.distributed.get_rank(), torch.distributed.get_world_size())


class Gradients(nn.Module):
    """The task's loss as a module's forward, which is what DistributedDataParallel can wrap."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.model, self.task = task.model, task

    def forward(
        self, x: Tensor, y: Tensor, generator: np.random.Generator, smoothing: float
    ) -> tuple[Tensor, Tensor | None]:
        return self.task(x, y, generator, smoothing)


class Images:
    """A training set held as bytes; batches become floats in [0, 1] on the device."""

    def __init__(self, images: ImageSet, preprocessing: Preprocessing, device: torch.device) -> None:
        self.x = torch.from_numpy(preprocessing.resize(images.x)).permute(0, 3, 1, 2).contiguous()
        self.y = torch.from_numpy(images.y)
        self.device = device

    def batch(self, indices: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[Tensor, Tensor]:
        chosen = torch.from_numpy(indices)
        return self.x[chosen].to(self.device).float() / 255, self.y[chosen].to(self.device)

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        for start in range(0, len(self.x), size):
            yield self.batch(np.arange(start, min(start + size, len(self.x))))


@torch.inference_mode()
def validate(task: Task, images: Images, seed: int) -> tuple[float, float | None]:
    """Mean loss and accuracy on the validation part, with the same draws in every epoch."""
    task.model.eval()
    generator = np.random.default_rng([seed, 2**31])
    losses, rights, count = 0.0, 0.0, 0
    known = True
    for x, y in images.batches(EVALUATION_BATCH):
        loss, right = task(x, y, generator, 0.0)
        losses, count = losses + loss.item() * len(x), count + len(x)
        known = known and right is not None
        rights += right.float().mean().item() * len(x) if right is not None else 0.0
    return losses / count, rights / count if known else None


def train(
    recipe: Recipe,
    folder: Path,
    *,
    data_root: Path | str | None = None,
    device: torch.device | str = "cpu",
    epochs: int | None = None,
    resume: bool = True,
    images: ImageSet | None = None,
    progress: ProgressHook | None = None,
) -> Equivariant:
    """Train M by a recipe in `folder` and return the model of the best epoch.

    The folder gets split.npz (indices), state.safetensors (to resume), best.safetensors, log.jsonl.
    """
    world, device = Distributed.start(), torch.device(device)
    epochs = epochs or recipe.epochs
    if images is None:
        images = load_images(f"{recipe.dataset}-train", data_root)
    if recipe.classes:
        images = images.only(recipe.classes)
    split = split_indices(len(images), seed=recipe.seed)
    preprocessing = Preprocessing(recipe.size, recipe.grey)
    proper = Images(images.take(split.proper), preprocessing, device)
    held_out = Images(images.take(split.validation), preprocessing, device)

    model = initialise(recipe, proper, split)
    average = blank_model(recipe.model).to(device)
    average.load_state_dict(model.state_dict())
    optimizer = make_optimizer(recipe, model)
    base_rates = [group["lr"] for group in optimizer.param_groups]
    state_path, best_path, log_path = (
        folder / "state.safetensors",
        folder / "best.safetensors",
        folder / "log.jsonl",
    )
    start, log = 0, list[EpochLog]()
    if resume and state_path.exists():
        start = load_state(state_path, recipe, epochs, model, average, optimizer)
        log = read_log(log_path)[:start]
    elif world.rank == 0:
        write_npz(folder / "split.npz", vars(split))

    task = Task(recipe, model)
    step_module: nn.Module = Gradients(task)
    if world.size > 1:
        step_module = nn.parallel.DistributedDataParallel(step_module)
    steps = max(1, len(proper.x) // recipe.batch)
    updates = start * steps
    for epoch in range(start, epochs):
        began = time.monotonic()
        model.train()
        generator = np.random.default_rng([recipe.seed, epoch])
        order = generator.permutation(len(proper.x))
        own = np.random.default_rng([recipe.seed, epoch, world.rank])
        total = 0.0
        with torch.random.fork_rng(enabled=True):  # dropout and AVT's noise draw from torch's own generator
            torch.manual_seed(int(own.integers(2**31)))
            for step in range(steps):
                for group, rate in zip(optimizer.param_groups, base_rates, strict=True):
                    group["lr"] = rate * learning_rate_factor(
                        recipe, (epoch * steps + step) / (epochs * steps)
                    )
                indices = order[step * recipe.batch : (step + 1) * recipe.batch][world.rank :: world.size]
                x, y = proper.batch(indices)
                loss, _ = step_module(augment(x, recipe, own), y, own, recipe.label_smoothing)
                if not torch.isfinite(loss):
                    raise TrainingError(
                        f"The loss became {loss.item()} in epoch {epoch + 1}, step {step + 1} of {recipe.name}: expected "
                        f"a finite number. The checkpoint of epoch {epoch} is intact in {folder}; lower the learning rate."
                    )
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                updates += 1
                decay = min(recipe.ema, updates / (updates + 10)) if recipe.ema else 0.0
                update_average(average, model, decay)
                total += loss.item()
                if progress is not None:
                    progress(epoch, step, steps, total / (step + 1))
        validation_loss, accuracy = validate(Task(recipe, average), held_out, recipe.seed)
        entry = EpochLog(epoch, total / steps, validation_loss, accuracy, time.monotonic() - began)
        log.append(entry)
        if world.rank == 0:
            if entry.validation_loss <= min(e.validation_loss for e in log):
                save_weights(best_path, average)
            write_text(log_path, "".join(json.dumps(vars(e)) + "\n" for e in log))
            save_state(state_path, recipe, epochs, epoch + 1, model, average, optimizer)
    if world.size > 1:
        torch.distributed.barrier()  # the first process writes the best weights; the others wait for them
    best = blank_model(recipe.model)
    load_weights(best_path, best)
    return best.to(device).eval()


def initialise(recipe: Recipe, proper: Images, split: Split) -> Equivariant:
    """M with the recipe's seed. A pretrained backbone gets its weights, one that starts from a detector that detector's;
    the stem of a fresh compact one is whitened on images of the proper training set."""
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        model = Equivariant(recipe.model).to(proper.device)
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if isinstance(model.backbone, EfficientNetLite0):
        model.backbone.load_imagenet()
    if recipe.start_from:
        model.backbone.load_state_dict(trained_backbone(Path(recipe.start_from), split).state_dict())
    elif isinstance(model.backbone, Compact):
        model.backbone.whiten(model.normalise(proper.batch(np.arange(min(5000, len(proper.x))))[0]))
    return model


def trained_backbone(folder: Path, split: Split) -> nn.Module:
    """The backbone of a detector that was trained before, on the same split: else calibration points would have been
    seen in training, and the guarantee would be gone."""
    if not (folder / "split.npz").is_file():
        raise TrainingError(
            f"Training starts from the backbone of {folder}, which is not there: expected a detector folder with its "
            f"split.npz. Train it first: python -m idecode_core train {folder.name} --out {folder}"
        )
    with np.load(folder / "split.npz", allow_pickle=False) as arrays:
        held_out = arrays["calibration"]
    if not np.array_equal(np.sort(held_out), np.sort(split.calibration)):
        raise TrainingError(
            f"{folder} was trained on another split: expected that it held out the same calibration points. Train it "
            "with the same dataset and seed, or start afresh."
        )
    scorer = load_detector(folder, device="cpu").scorer
    assert isinstance(scorer, ImageScorer)
    return scorer.model.backbone


def read_log(path: Path) -> list[EpochLog]:
    return [EpochLog(**json.loads(line)) for line in path.read_text().splitlines()]
