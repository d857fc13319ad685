"""How a rival learns its network: the same backbone, gradient steps and pictures per step for all of them.

The schedule, the moving average of the weights and the optimiser are those of iDECODe's own one-class recipes
(training/recipes.py), so that methods differ by what they ask, not by how long they were trained.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from idecode_core.errors import InputError, TrainingError
from idecode_core.image.features import Preprocessing
from idecode_core.models import Equivariant, ModelConfig
from idecode_core.models.backbones import Compact

Draw = Callable[[int], Tensor]
"""So many pictures of the training set at random, floats in [0, 1]: (count, 3, size, size)."""
Loss = Callable[[Equivariant, Draw, torch.Generator], Tensor]
FEWEST = 2
AVERAGED = 0.99


@dataclass(frozen=True)
class Budget:
    """What a rival may spend."""

    steps: int = 1596
    """Twelve epochs of 4,275 pictures in four views."""
    batch: int = 128
    """Pictures, or views of pictures, that go through the network per step."""
    widths: tuple[int, ...] = (16, 64, 128)
    size: int = 24
    learning_rate: float = 0.1
    seed: int = 0


def checked_pictures(pictures: NDArray[np.uint8], size: int) -> Tensor:
    """Training pictures (N, h, w, 3), uint8, at the model's size: (N, 3, size, size)."""
    pictures = np.asarray(pictures)
    if pictures.ndim != 4 or pictures.shape[3] != 3 or pictures.dtype != np.uint8:
        hint = " Some of them are not finite." if not np.isfinite(pictures.astype(float)).all() else ""
        raise InputError(
            f"Expected training pictures as uint8 (N, h, w, 3), got {pictures.dtype} {pictures.shape}.{hint} Convert them "
            "first."
        )
    if len(pictures) < FEWEST:
        raise InputError(
            f"Expected at least {FEWEST} training pictures, got {len(pictures)}; add pictures, or check that the class is in "
            "the dataset."
        )
    if (pictures == pictures[0]).all():
        raise InputError(
            f"All {len(pictures)} training pictures are alike: expected different ones, or there is nothing to learn. Add "
            "others."
        )
    return torch.from_numpy(Preprocessing(size).resize(pictures)).permute(0, 3, 1, 2).contiguous()


def fresh_network(outputs: int, x: Tensor, budget: Budget, *, hidden: int = 0) -> Equivariant:
    """The compact backbone before training, its stem whitened on training pictures x (N, 3, size, size), uint8."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(budget.seed)
        network = Equivariant(ModelConfig("compact", outputs=outputs, hidden=hidden, widths=budget.widths))
    assert isinstance(network.backbone, Compact)
    network.backbone.whiten(network.normalise(x.float() / 255))
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network


def learn(
    network: Equivariant, loss: Loss, x: Tensor, budget: Budget, *, adam: float | None = None
) -> Equivariant:
    """Minimise a loss on training pictures x (N, 3, size, size), uint8; gives the average of the weights.

    SGD with momentum and one cycle of the learning rate; with `adam`, Adam at that constant rate.
    """
    generator = torch.Generator().manual_seed(budget.seed)
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    rate = adam or budget.learning_rate
    optimiser: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler
    if adam:
        optimiser = torch.optim.Adam(weights, rate, weight_decay=1e-6)
        schedule = torch.optim.lr_scheduler.ConstantLR(optimiser, factor=1.0)
    else:
        optimiser = torch.optim.SGD(weights, rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser,
            rate,
            total_steps=budget.steps,
            pct_start=0.2,
            anneal_strategy="linear",
            cycle_momentum=False,
            div_factor=10,
            final_div_factor=50,
        )
    average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(AVERAGED), use_buffers=True)

    def draw(count: int) -> Tensor:
        return x[torch.randint(len(x), (count,), generator=generator)].float() / 255

    network.train()
    for step in range(budget.steps):
        found = loss(network, draw, generator)
        if not torch.isfinite(found):
            raise TrainingError(
                f"The loss became {found.item()} in step {step + 1}: expected a finite number. Lower the learning rate."
            )
        optimiser.zero_grad(set_to_none=True)
        found.backward()
        optimiser.step()
        schedule.step()
        average.update_parameters(network)
    learned = average.module
    assert isinstance(learned, Equivariant)
    return learned.requires_grad_(False).eval()
