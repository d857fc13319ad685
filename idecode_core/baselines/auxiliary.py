"""AUX: the network names the turn, the shift to the right and the shift down apart (Hendrycks et al. 2019, arXiv 1906.12340)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from idecode_core.baselines.one_class import OneClass
from idecode_core.baselines.rotnet import RotNet
from idecode_core.baselines.views import turned_and_shifted
from idecode_core.models import Equivariant

HEADS = (4, 3, 3)
"""Answers to each question: which quarter turn, which shift down, which shift to the right."""


def questions(which: Tensor) -> tuple[Tensor, ...]:
    """The right answers for views of `turned_and_shifted` by their places (m,): three times (m,)."""
    turn, shift = which % 4, which // 4
    return turn, shift % 3, shift // 3


def errors(logits: Tensor, which: Tensor) -> Tensor:
    """The cross-entropies of the three answers, added: logits (batch, m, 10), views (m,) -> (batch, m)."""
    asked = zip(logits.split(HEADS, dim=-1), questions(which), strict=True)
    each = [cross_entropy(a.movedim(-1, 1), y.expand(len(a), -1), reduction="none") for a, y in asked]
    return torch.stack(each).sum(dim=0)


@dataclass(frozen=True, eq=False, kw_only=True)
class AuxiliaryShifts(OneClass):
    """Score: mean over the 36 turned and shifted views of the sum of the three cross-entropies.

    The paper's Table 2 calls it AUX, its table of CIFAR-100 AUX+Trans.
    """

    kind: ClassVar[str] = "auxiliary_shifts"
    term: ClassVar[str] = "how badly its turns and shifts are named"

    @classmethod
    def views_of(cls, size: int) -> Tensor:
        return turned_and_shifted(size)

    @classmethod
    def outputs(cls, views: int) -> int:
        return sum(HEADS)

    @classmethod
    def loss(cls, network: Equivariant, gx: Tensor, which: Tensor, learned: dict[str, Tensor]) -> Tensor:
        z = network.encode(gx.flatten(0, 1)).unflatten(0, gx.shape[:2])
        return errors(network.decode(None, z), which).mean()

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return errors(logits, torch.arange(len(self.views), device=logits.device)).mean(dim=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Auxiliary(RotNet):
    """Score: mean over the four quarter turns r of the cross-entropy between M(r(x)) and r.

    AUX without shifts, as the paper's table of CIFAR-100 has it: RotNet's network under a score without an upper end.
    """

    kind: ClassVar[str] = "auxiliary"
    term: ClassVar[str] = "how badly its turns are named"

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return -logits.log_softmax(dim=-1).diagonal(dim1=1, dim2=2).mean(dim=1)
