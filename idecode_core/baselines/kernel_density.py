"""KD+PU: how many training points of the predicted class lie near, and how sure the classifier is (Feinman et al. 2017,
arXiv 1703.00410; App. C.3)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from idecode_core.baselines.layers import observe, observe_training
from idecode_core.baselines.supervised import SupervisedScorer
from idecode_core.models import Equivariant

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

    kind: ClassVar[str] = "kernel_density"
    term: ClassVar[str] = (
        "log-odds of an attack: density of known ones nearby, and how sure the classifier is"
    )

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
