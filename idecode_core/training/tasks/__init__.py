"""What M learns, for each modality: a task says what a batch is, what its loss is and how it is validated."""

from typing import Any

import torch

from idecode_core.training.parts import Parts
from idecode_core.training.recipe import Recipe
from idecode_core.training.tasks.audio import AudioTask
from idecode_core.training.tasks.image import ImageTask
from idecode_core.training.tasks.task import Task

__all__ = ["AudioTask", "ImageTask", "Task", "make_task"]


def make_task(recipe: Recipe[Any], parts: Parts[Any], device: torch.device | str = "cpu") -> Task:
    """The task of a recipe on its data."""
    kinds: dict[str, type[ImageTask] | type[AudioTask]] = {"image": ImageTask, "audio": AudioTask}
    return kinds[recipe.modality](recipe, parts, torch.device(device))
