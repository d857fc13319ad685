"""KD+PU: how many training points of the predicted class lie near, and how sure the classifier is (Feinman et al. 2017,
arXiv 1703.00410; App. C.3).

LID: the local intrinsic dimensionality around x in every layer (Ma et al. 2018, arXiv 1801.02613; App. C.3).

Mahalanobis distances of all layers from the closest class, with some noise taken out of x first (Lee et al. 2018, arXiv
1807.03888; App. C.3).
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from idecode_core.models import Equivariant
from idecode_core.scorers.distances import shared_gaussian, squared_distances
from paper.rivals.layers import SupervisedScorer, observe, observe_training, quality

WIDTHS = tuple(2 ** (i / 2) for i in range(-8, 5))
"""Bandwidths that are tried, in units of the median distance within a class."""


def log_density(z: Tensor, bank: Tensor, sigma: float) -> Tensor:
    """log KD(x) = log (1 / |X_t|) sum over x_i in X_t of exp(-||z_i - z||^2 / sigma^2), of features z (batch, d): (batch,)."""
    squares = torch.cdist(z, bank, compute_mode="donot_use_mm_for_euclid_dist").square()  # (batch, |X_t|)
    return torch.logsumexp(-squares / sigma**2, dim=1) - math.log(len(bank))


def likeliest_sigma(banks: list[Tensor]) -> float:
    """The bandwidth under which training points are likeliest, each by the others of its class (Feinman et al., App. B)."""
    squares = [torch.cdist(bank, bank).square().fill_diagonal_(math.inf) for bank in banks]
    distances = torch.cat([s[s.isfinite()] for s in squares])
    usual, d = float(distances.median().sqrt()), banks[0].shape[1]

    def likelihood(sigma: float) -> float:
        rows = [torch.logsumexp(-s / sigma**2, dim=1) - math.log(len(s) - 1) for s in squares]
        return float(torch.cat(rows).mean()) - d * math.log(sigma)

    return max((usual * width for width in WIDTHS), key=likelihood)


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelDensity(SupervisedScorer):
    """Logistic regression on log KD(x), of the class that the classifier names, and PU(x), its largest softmax value."""

    kind, title = "kernel_density", "KD+PU"
    term = "log-odds of an attack: density of known ones nearby, and how sure the classifier is"
    summary = "a regression on the density of known features of the named class and on the largest share (Feinman et al. 2017)"

    bank: Tensor  # (N, d): features of the proper training set
    labels: Tensor  # (N,)
    sigma: Tensor  # (1,)

    @classmethod
    def learned(cls, model: Equivariant, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        bank = observe_training(model, x, y, 2).features
        sigma = likeliest_sigma([bank[y == c] for c in y.unique() if (y == c).sum() > 1])
        return {"bank": bank, "labels": y, "sigma": torch.tensor([sigma])}

    def numbers(self, x: Tensor) -> Tensor:
        seen = observe(self.model, x)
        named = seen.logits.argmax(dim=1)  # (batch,): t, the class that is predicted
        density = torch.empty(len(x), device=x.device)
        for c in named.unique():
            near = self.bank[self.labels == c] if (self.labels == c).any() else self.bank
            density[named == c] = log_density(seen.features[named == c], near, float(self.sigma))
        return torch.stack([density, seen.logits.softmax(dim=1).amax(dim=1)], dim=1)


BATCH, K = 100, 20
"""Training points among which neighbours are looked for, and how many neighbours: those of Ma et al."""
NEAREST = 1e-12
"""Distances are at least this: a training point has itself for a neighbour, and log 0 has no value."""


def lid(z: Tensor, bank: Tensor, k: int) -> Tensor:
    """LID(x) = -(1/k sum over i of log(r_i / r_k))^-1, with r_i the distance from the i-th neighbour in the bank: (batch,)."""
    distances = torch.cdist(z, bank, compute_mode="donot_use_mm_for_euclid_dist")  # (batch, N)
    r = distances.topk(k, dim=1, largest=False).values.clamp_min(NEAREST)  # (batch, k), rising
    mean = torch.log(r / r[:, -1:]).mean(dim=1)
    return -1 / mean.clamp_max(-1e-6)  # k equal distances would be divided by zero


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalDimension(SupervisedScorer):
    """Logistic regression on LID(x) of every layer, the logits among them.

    The authors look for neighbours in a fresh minibatch each time; ours is drawn once, so that a score depends on x alone.
    """

    kind, title, term = "lid", "LID", "log-odds of an attack: dimensions in which known ones lie around it"
    summary = "a regression on the local intrinsic dimensionality around x in every layer (Ma et al. 2018)"

    banks: tuple[Tensor, ...]  # per layer (N, channels)
    k: Tensor  # (1,)

    @classmethod
    def learned(cls, model: Equivariant, x: Tensor, y: Tensor) -> dict[str, Any]:
        chosen = torch.linspace(0, len(x) - 1, min(len(x), BATCH)).round().long()
        seen = observe_training(model, x[chosen], y[chosen], K)
        return {"banks": (*seen.layers, seen.logits), "k": torch.tensor([K])}

    def numbers(self, x: Tensor) -> Tensor:
        seen = observe(self.model, x)
        layers = zip((*seen.layers, seen.logits), self.banks, strict=True)
        return torch.stack([lid(z, bank, int(self.k)) for z, bank in layers], dim=1)


STEPS = (0.0, 0.0005, 0.001, 0.0014, 0.002, 0.005, 0.01)
"""Sizes of the step on x that are tried, in pixel units: those of Lee et al."""
TRIED_ON = 100
"""Attacked pictures by which the step is chosen; a step costs a pass and a gradient per layer."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MahalanobisLayers(SupervisedScorer):
    """Logistic regression on M_l(x') of every layer l, M_l(x) = min over c of (f_l(x) - mu_c)' S^-1 (f_l(x) - mu_c).

    x' = x - step * sign(grad M_l(x)) is nearer to its class; clean inputs come nearer than attacked ones do.
    """

    kind, title = "mahalanobis_layers", "Mahalanobis distance, all layers"
    term = "log-odds of an attack: distance from the closest class in every layer"
    summary = (
        "a regression on the Mahalanobis distances of all layers from the closest class (Lee et al. 2018)"
    )

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
        qualities = [quality(*scorer.both_sides(*few)) for scorer in tried]
        return SupervisedScorer.regressed(tried[qualities.index(max(qualities))], clean, attacked)

    def distances(self, x: Tensor) -> list[Tensor]:
        """M_l(x) of every layer, each (batch,)."""
        gaussians = zip(observe(self.model, x).layers, self.centres, self.whitens, self.means, strict=True)
        return [squared_distances(z, *gaussian).amin(dim=1) for z, *gaussian in gaussians]

    def numbers(self, x: Tensor) -> Tensor:
        if not self.step.any():
            return torch.stack(self.distances(x), dim=1)
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            distances = self.distances(x)
            slopes = [torch.autograd.grad(layer.sum(), x, retain_graph=True)[0] for layer in distances]
        with torch.no_grad():
            nearer = [(x - float(self.step) * slope.sign()) for slope in slopes]  # per layer its own x'
            return torch.stack([self.distances(moved)[i] for i, moved in enumerate(nearer)], dim=1)
