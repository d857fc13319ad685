"""DeepSVDD: a network that maps the class close to one point (Ruff et al. 2018, ICML)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from idecode_core.baselines.one_class import OneClass
from idecode_core.models import Equivariant

AWAY_FROM_ZERO = 0.1
"""Coordinates of the centre closer to 0 than this are moved: a zero is too easy to reach (the authors' code)."""

USUAL_MEAN, USUAL_DEVIATION = 0.5, 0.2
"""Of pixel values from 0 to 1."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DeepSVDD(OneClass):
    """Score: ||f(x) - c||^2, where c is the mean of f over the class before training, and training minimises it.

    x has the same brightness and contrast as every other picture, as in the authors' preprocessing. Biases and the scales of
    normalisation stay as they are: with them, one constant map would bring every picture to c. Adam at the published 1e-4.
    """

    kind: ClassVar[str] = "deep_svdd"
    term: ClassVar[str] = "distance from the centre of the class"
    adam: ClassVar[float | None] = 1e-4

    centre: Tensor  # (d,)

    @classmethod
    def views_of(cls, size: int) -> Tensor:
        return torch.eye(3, dtype=torch.float64)[None]  # x as it is

    @classmethod
    def before(cls, network: Equivariant, x: Tensor) -> dict[str, Tensor]:
        for module in network.backbone.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.requires_grad_(False)
            elif isinstance(module, nn.Conv2d) and module.bias is not None:
                module.bias.requires_grad_(False)
        with torch.no_grad():
            centre = network.encode(levelled(x)).mean(
                dim=0
            )  # with the statistics of the batch, as in training
        small = centre.abs() < AWAY_FROM_ZERO
        return {"centre": torch.where(small, AWAY_FROM_ZERO * torch.sign(centre + 1e-12), centre)}

    @classmethod
    def loss(cls, network: Equivariant, gx: Tensor, which: Tensor, learned: dict[str, Tensor]) -> Tensor:
        return distances(network.encode(levelled(gx[:, 0])), learned["centre"]).mean()

    def strangeness(self, x: Tensor) -> Tensor:
        return super().strangeness(levelled(x))

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return distances(z[:, 0], self.centre)


def levelled(x: Tensor) -> Tensor:
    """Pictures (batch, 3, h, w) with the mean value and the mean deviation from it that pictures have on the whole (global
    contrast normalisation with the L1 norm)."""
    from_mean = x - x.mean(dim=(1, 2, 3), keepdim=True)
    return USUAL_MEAN + USUAL_DEVIATION * from_mean / from_mean.abs().mean(
        dim=(1, 2, 3), keepdim=True
    ).clamp_min(1e-6)


def distances(z: Tensor, centre: Tensor) -> Tensor:
    """Squared distances of features (batch, d) from the centre (d,): (batch,)."""
    return (z - centre).square().sum(dim=1)
