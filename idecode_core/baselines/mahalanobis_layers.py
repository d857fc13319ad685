"""Mahalanobis distances of all layers from the closest class, with some noise taken out of x first (Lee et al. 2018, arXiv
1807.03888; App. C.3)."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from idecode_core.baselines.layers import observe, observe_training
from idecode_core.baselines.mahalanobis import shared_gaussian, squared_distances
from idecode_core.baselines.supervised import SupervisedScorer, quality
from idecode_core.models import Equivariant

STEPS = (0.0, 0.0005, 0.001, 0.0014, 0.002, 0.005, 0.01)
"""Sizes of the step on x that are tried, in pixel units: those of Lee et al."""
TRIED_ON = 100
"""Attacked pictures by which the step is chosen; a step costs a pass and a gradient per layer."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MahalanobisLayers(SupervisedScorer):
    """Logistic regression on M_l(x') of every layer l, M_l(x) = min over c of (f_l(x) - mu_c)' S^-1 (f_l(x) - mu_c).

    x' = x - step * sign(grad M_l(x)) is nearer to its class; clean inputs come nearer than attacked ones do.
    """

    kind: ClassVar[str] = "mahalanobis_layers"
    term: ClassVar[str] = "log-odds of an attack: distance from the closest class in every layer"

    centres: tuple[Tensor, ...]  # per layer (channels,)
    whitens: tuple[Tensor, ...]  # per layer (channels, channels)
    means: tuple[Tensor, ...]  # per layer (classes, channels), whitened
    step: Tensor  # (1,)

    @classmethod
    def learned(cls, model: Equivariant, x: Tensor, y: Tensor) -> dict[str, Any]:
        seen = observe_training(model, x, y, 2)
        gaussians = [shared_gaussian(layer, y) for layer in seen.layers]
        centres, whitens, means = zip(*gaussians, strict=True)
        return {"centres": centres, "whitens": whitens, "means": means, "step": torch.zeros(1)}

    def regressed(self, clean: Tensor, attacked: Tensor) -> Self:
        """With the step under which a regression on few pictures is best."""
        tried = [replace(self, step=torch.tensor([step])) for step in STEPS]
        few = (clean[:TRIED_ON], attacked[:TRIED_ON])
        qualities = [quality(*one.both_sides(*few)) for one in tried]
        return SupervisedScorer.regressed(tried[qualities.index(max(qualities))], clean, attacked)

    def distances(self, x: Tensor) -> list[Tensor]:
        """M_l(x) of every layer, each (batch,)."""
        gaussians = zip(observe(self.model, x).layers, self.centres, self.whitens, self.means, strict=True)
        return [squared_distances(z, *found).amin(dim=1) for z, *found in gaussians]

    def numbers(self, x: Tensor) -> Tensor:
        if not self.step.any():
            return torch.stack(self.distances(x), dim=1)
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            found = self.distances(x)
            slopes = [torch.autograd.grad(one.sum(), x, retain_graph=True)[0] for one in found]
        with torch.no_grad():
            nearer = [(x - float(self.step) * slope.sign()) for slope in slopes]  # per layer its own x'
            return torch.stack([self.distances(moved)[i] for i, moved in enumerate(nearer)], dim=1)
