"""Distance of features from their k-th nearest neighbour in the training set (Sun et al. 2022, arXiv 2204.06507)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import normalize

from idecode_core.baselines.features import FeatureScorer, check_features
from idecode_core.baselines.on_network import OnNetwork
from idecode_core.models.equivariant import Equivariant

K = 5
"""Which neighbour: measured on development data (research/feature_choice.py, docs/your-own-data.md)."""
PUBLISHED_K = 50
"""For CIFAR-10, with all training features in the bank."""
MOST = 20_000
"""Features that are kept; more are thinned out evenly."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Neighbours(FeatureScorer):
    """Score: the distance of z = f(g(x)), of length 1, from the k-th nearest feature of the training set."""

    kind: ClassVar[str] = "neighbours"
    term: ClassVar[str] = "distance from the most similar known ones"

    bank: Tensor  # (N, d)
    labels: Tensor  # (N,): the classes of the bank
    k: Tensor  # (1,)

    @classmethod
    def fit(cls, z: Tensor, y: Tensor, *, k: int = K, **parts: Any) -> Self:
        check_features(z, y, k)
        chosen = torch.linspace(0, len(z) - 1, min(len(z), MOST)).round().long()
        bank = z[chosen].half().float()  # half precision, so that it is stored in half the room
        return cls(bank=bank, labels=y[chosen], k=torch.tensor([k]), **parts)

    def distances(self, z: Tensor) -> Tensor:
        return torch.cdist(z.to(self.device), self.bank).kthvalue(int(self.k), dim=1).values

    def nearest(self, z: Tensor) -> Tensor:
        return self.labels[torch.cdist(z.to(self.device), self.bank).argmin(dim=1)]


@dataclass(frozen=True, eq=False, kw_only=True)
class NeighboursOnce(OnNetwork):
    """The same score of x itself as published: k = 50, and all training features are kept."""

    kind: ClassVar[str] = "neighbours_once"
    term: ClassVar[str] = Neighbours.term
    chosen: ClassVar[tuple[str, ...]] = ("k",)
    fewest: ClassVar[int] = PUBLISHED_K

    bank: Tensor  # (N, d)
    k: int = PUBLISHED_K

    @classmethod
    def learned(cls, z: Tensor, y: Tensor, model: Equivariant) -> dict[str, Tensor]:
        return {"bank": normalize(z, dim=-1).half().float()}  # stored in half the room

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return torch.cdist(normalize(z, dim=-1), self.bank).kthvalue(self.k, dim=1).values
