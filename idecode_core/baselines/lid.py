"""LID: the local intrinsic dimensionality around x in every layer (Ma et al. 2018, arXiv 1801.02613; App. C.3)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from idecode_core.baselines.layers import observe, observe_training
from idecode_core.baselines.supervised import SupervisedScorer
from idecode_core.models import Equivariant

BATCH, K = 100, 20
"""Training points among which neighbours are looked for, and how many neighbours: those of Ma et al."""
NEAREST = 1e-12
"""Distances are at least this: a training point has itself for a neighbour, and log 0 has no value."""


def lid(z: Tensor, bank: Tensor, k: int) -> Tensor:
    """LID(x) = -(1/k sum over i of log(r_i / r_k))^-1, with r_i the distance from the i-th neighbour in the bank: (batch,)."""
    distances = torch.cdist(z, bank, compute_mode="donot_use_mm_for_euclid_dist")  # (batch, N)
    r = distances.topk(k, dim=1, largest=False).values.clamp_min(NEAREST)  # (batch, k), rising
    return -1 / torch.log(r / r[:, -1:]).mean(dim=1).clamp_max(
        -1e-6
    )  # k equal distances would be divided by zero


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalDimension(SupervisedScorer):
    """Logistic regression on LID(x) of every layer, the logits among them.

    The authors look for neighbours in a fresh minibatch each time; ours is drawn once, so that a score depends on x alone.
    """

    kind: ClassVar[str] = "lid"
    term: ClassVar[str] = "log-odds of an attack: dimensions in which known ones lie around it"

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
