"""Rivals that ask which view of a picture they see, quarter turns, shifts or mirror images.

RotNet: can the network tell how the picture was turned? (Gidaris et al. 2018, arXiv 1803.07728; as a one-class
detector Golan and El-Yaniv 2018, Hendrycks et al. 2019).

GM: 72 geometric views, and whether the network can tell which one it sees (Golan and El-Yaniv 2018, arXiv 1805.10917).

AUX: the network names the turn, the shift to the right and the shift down apart (Hendrycks et al. 2019, arXiv 1906.12340).
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from idecode_core.models import Equivariant
from paper.rivals.one_class import OneClass, geometric, turned_and_shifted


def share_missed(logits: Tensor) -> Tensor:
    """1 - mean over the views t of softmax(M(t(x)))_t: logits (batch, views, views) -> (batch,)."""
    return 1 - logits.softmax(dim=-1).diagonal(dim1=1, dim2=2).mean(dim=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class RotNet(OneClass):
    """Score: 1 - mean over the four quarter turns r of softmax(M(r(x)))_r."""

    kind, title, term = "rotnet", "RotNet", "how badly its turns are told apart"
    summary = "1 less the mean share that the network gives to the right one of four quarter turns (Gidaris et al. 2018)"

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return share_missed(logits)


@dataclass(frozen=True, eq=False, kw_only=True)
class Geometric(OneClass):
    """Score: 1 - mean over the 72 views t of softmax(M(t(x)))_t.

    This is the authors' simplified normality score; their full one fits a Dirichlet distribution to the answers. A mirror
    image is one of the views, so training pictures are not mirrored at random.
    """

    kind, title, term = "geometric", "GM", "how badly its 72 views are told apart"
    summary = (
        "1 less the mean share that the network gives to the right one of 72 views (Golan and El-Yaniv 2018)"
    )
    mirrored = False
    views_of = staticmethod(geometric)

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return share_missed(logits)


@dataclass(frozen=True, eq=False, kw_only=True)
class Auxiliary(OneClass):
    """Score: mean over the four quarter turns r of the cross-entropy between M(r(x)) and r.

    AUX without shifts, as the paper's table of CIFAR-100 has it: RotNet's network under a score without an upper end.
    """

    kind, title, term = "auxiliary", "AUX", "how badly its turns are named"
    summary = "mean cross-entropy between the network's answer and the right one of four quarter turns (Hendrycks et al. 2019)"

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return -logits.log_softmax(dim=-1).diagonal(dim1=1, dim2=2).mean(dim=1)


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


def naming_error(network: Equivariant, gx: Tensor, which: Tensor, learned: dict[str, Tensor]) -> Tensor:
    """The mean of `errors` over views of pictures gx (batch, m, 3, h, w)."""
    z = network.encode(gx.flatten(0, 1)).unflatten(0, gx.shape[:2])
    return errors(network.decode(None, z), which).mean()


@dataclass(frozen=True, eq=False, kw_only=True)
class AuxiliaryShifts(OneClass):
    """Score: mean over the 36 turned and shifted views of the sum of the three cross-entropies.

    The paper's Table 2 calls it AUX, its table of CIFAR-100 AUX+Trans.
    """

    kind, title, term = "auxiliary_shifts", "AUX+Trans", "how badly its turns and shifts are named"
    summary = "mean cross-entropy of the turn and the two shifts that the network names in 36 views (Hendrycks et al. 2019)"
    outputs = sum(HEADS)
    views_of = staticmethod(turned_and_shifted)
    loss = staticmethod(naming_error)

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return errors(logits, torch.arange(len(self.views), device=logits.device)).mean(dim=1)
