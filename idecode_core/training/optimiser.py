"""How a step changes the weights: optimisers, learning rates, the moving average."""

from typing import Any

import torch
from torch import nn

from idecode_core.training.recipe import Recipe

FASTEST_AT = 0.2  # of the whole training, under one_cycle


def make_optimizer(recipe: Recipe[Any], model: nn.Module) -> torch.optim.Optimizer:
    """SGD with momentum, Adam (decay in the gradient) or AdamW (decay apart); a log-variance head has its own rate."""
    rates = {False: recipe.learning_rate, True: recipe.head_learning_rate or recipe.learning_rate}
    named = [(name.startswith("variance_head."), weight) for name, weight in model.named_parameters()]
    groups: list[dict[str, Any]] = [
        {"params": [weight for is_head, weight in named if is_head == head], "lr": rate}
        for head, rate in rates.items()
    ]
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
