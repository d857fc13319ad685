"""What the training loop asks of a task, and what all tasks share."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idecode_core.audio.scorer import AudioScorer
from idecode_core.draws import Keys
from idecode_core.image.scorer import ImageScorer
from idecode_core.training.parts import Parts
from idecode_core.training.recipe import Recipe
from idecode_core.training.run_state import World

Batch = tuple[Any, ...]
"""What `Task.loss` takes; its first entry is x (batch, ...)."""
Answer = tuple[Tensor, Tensor | None]
"""The mean loss of a batch, and where M names classes which of its answers were right."""


class Task(Protocol):
    """A recipe with its data on a device. Every random choice of epoch e comes from (recipe seed, e)."""

    recipe: Recipe[Any]
    parts: Parts[Any]
    device: torch.device
    examples: int
    """How many examples an epoch has."""

    def blank(self) -> nn.Module:
        """M before its weights are loaded."""
        ...

    def initialise(self) -> nn.Module:
        """M before training, on the device, with the recipe's seed."""
        ...

    def batches(self, epoch: int, world: World) -> Iterator[Batch]:
        """An epoch's batches, of each this process's share. May seed torch's generator: the loop restores it."""
        ...

    def validation(self) -> Iterator[Batch]:
        """The validation part, with the same draws in every epoch; nothing where there is none."""
        ...

    def loss(self, model: nn.Module, *batch: Any) -> Answer: ...

    def scorer(self, model: nn.Module) -> ImageScorer | AudioScorer:
        """The trained M with the recipe's G and base NCM."""
        ...


def random_keys(count: int, generator: np.random.Generator) -> Keys:
    """Fresh keys for training draws, which need not be tied to content."""
    return generator.integers(0, 2**64, size=(count, 2), dtype=np.uint64)


def steps_per_epoch(task: Task) -> int:
    return max(1, task.examples // task.recipe.batch)


def in_batches(order: NDArray[np.int64], size: int, world: World) -> Iterator[NDArray[np.int64]]:
    """Whole batches of an order, of each this process's share; a rest that fills no batch waits for the next epoch."""
    for start in range(0, max(1, len(order) - size + 1), size):
        yield order[start : start + size][world.rank :: world.size]
