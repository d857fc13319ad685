"""What M learns from one batch: the loss of a recipe's task, on augmented images and freshly drawn transforms."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy as torch_cross_entropy

from idecode_core.draws import Keys
from idecode_core.losses import centre_triplet, gaussian_nll
from idecode_core.models import Equivariant
from idecode_core.recipes import Recipe
from idecode_core.transforms import Rotations


def random_keys(count: int, generator: np.random.Generator) -> Keys:
    """Fresh keys for training draws, which need not be tied to content."""
    return generator.integers(0, 2**64, size=(count, 2), dtype=np.uint64)


def augment(x: Tensor, recipe: Recipe, generator: np.random.Generator) -> Tensor:
    """Random flips and shifts of x (batch, 3, h, w), before g is applied."""
    batch, _, h, w = x.shape
    if recipe.flip:
        flips = torch.from_numpy(generator.random(batch) < 0.5).to(x.device)
        x = torch.where(flips[:, None, None, None], x.flip(-1), x)
    if recipe.crop:
        padded = nn.functional.pad(x, (recipe.crop,) * 4, mode="reflect")
        shifts = torch.from_numpy(generator.integers(0, 2 * recipe.crop + 1, size=(2, batch))).to(x.device)
        rows = shifts[0][:, None] + torch.arange(h, device=x.device)  # (batch, h)
        columns = shifts[1][:, None] + torch.arange(w, device=x.device)  # (batch, w)
        points = torch.arange(batch, device=x.device)[:, None, None]
        x = padded.permute(0, 2, 3, 1)[points, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    return x


class Task:
    """The loss of one batch under a recipe, and how to tell whether M was right."""

    def __init__(self, recipe: Recipe, model: Equivariant) -> None:
        self.recipe, self.model = recipe, model

    def __call__(
        self, x: Tensor, y: Tensor, generator: np.random.Generator, smoothing: float
    ) -> tuple[Tensor, Tensor | None]:
        """x (batch, 3, h, w), labels y (batch,) -> mean loss, and for classes which answers were right."""
        recipe, model, transforms = self.recipe, self.model, self.recipe.transforms
        if recipe.task == "label":
            parameters = transforms.sample(random_keys(len(x), generator), 1)
            shown = torch.from_numpy(generator.random(len(x)) < recipe.transformed).to(x.device)
            gx = transforms.apply(x, parameters).squeeze(1)
            logits = model.decode(
                None, model.encode(torch.where(shown[:, None, None, None], gx, x))[:, None]
            ).squeeze(1)
            return torch_cross_entropy(logits, y, label_smoothing=smoothing), logits.argmax(-1) == y
        if isinstance(transforms, Rotations):  # training and scoring may show different numbers of ranges
            transforms = replace(transforms, per_draw="all" if recipe.all_ranges else "one")
        parameters = transforms.sample(random_keys(len(x), generator), 1)  # (batch, m, ...)
        target = transforms.target(parameters).to(x.device)
        gx = transforms.apply(x, parameters)  # (batch, m, 3, h, w)
        m = gx.shape[1]
        if model.config.pair:
            z_all = model.encode(torch.cat([x, gx.flatten(0, 1)]))
            z, z_g = z_all[: len(x)], z_all[len(x) :].unflatten(0, (len(x), m))
        else:
            z, z_g = None, model.encode(gx.flatten(0, 1)).unflatten(0, (len(x), m))
        if recipe.task == "transform_parameters":
            loss = gaussian_nll(model.decode(z, z_g), model.decode_log_variance(z, z_g), target)
            return loss, None
        logits = model.decode(z, z_g).flatten(0, 1)
        labels = target.flatten()
        loss = torch_cross_entropy(logits, labels, label_smoothing=smoothing)
        if recipe.triplet:
            loss = loss + recipe.triplet * centre_triplet(z_g.flatten(0, 1), labels)
        return loss, logits.argmax(-1) == labels
