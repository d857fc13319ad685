"""GOAD: each view has a centre in feature space, and views of strange pictures miss theirs (Bergman and Hoshen 2020,
arXiv 2005.02359)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from idecode_core.baselines.one_class import OneClass, encode_views
from idecode_core.baselines.views import affine, geometric
from idecode_core.models import Equivariant

MARGIN, TRIPLET, SHORTNESS = 1.0, 0.1, 10.0
"""The margin, and the weights of the centre-triplet loss and of short features beside the cross-entropy: those of the authors'
code."""
PAPER_MARGIN = 0.1
"""What iDECODe's paper has in its own one-class recipe."""


def centre_triplet(z: Tensor, labels: Tensor, margin: float = PAPER_MARGIN) -> Tensor:
    """GOAD's centre-triplet loss on features z (points, d) with transform classes (points,).

    mean(max(0, d(z, own centre)^2 + margin - min over other centres of d^2)); centres are batch means.
    """
    classes, labels = torch.unique(labels, return_inverse=True)
    if len(classes) < 2:
        return z.new_zeros(())
    one_hot = torch.nn.functional.one_hot(labels, len(classes)).to(z.dtype)  # (points, classes)
    centres = (one_hot.T @ z) / one_hot.sum(dim=0)[:, None]  # (classes, d)
    distances = torch.cdist(z, centres).square()  # (points, classes)
    own = distances.gather(1, labels[:, None]).squeeze(1)
    others = distances.masked_fill(one_hot.bool(), torch.inf).amin(dim=1)
    return torch.relu(own + margin - others).mean()


@dataclass(frozen=True, eq=False, kw_only=True)
class GOAD(OneClass):
    """Score: mean over the views m of -log P(m | T_m x), P(m' | z) proportional to exp(-||z - c_m'||^2).

    c_m is the mean of f(T_m x) over training pictures. The views are GM's 72.
    """

    kind: ClassVar[str] = "goad"
    term: ClassVar[str] = "how far its views lie from their centres"
    mirrored: ClassVar[bool] = False
    adam: ClassVar[float | None] = 1e-3

    centres: Tensor  # (views, d)

    @classmethod
    def views_of(cls, size: int) -> Tensor:
        return geometric(size)

    @classmethod
    def loss(cls, network: Equivariant, gx: Tensor, which: Tensor, learned: dict[str, Tensor]) -> Tensor:
        z = network.encode(gx.flatten(0, 1))  # (batch * m, d)
        labels = which.expand(len(gx), -1).flatten()
        logits = network.decode(None, z[:, None])[:, 0]
        triplet = TRIPLET * centre_triplet(z, labels, MARGIN)
        return cross_entropy(logits, labels) + triplet + SHORTNESS * z.square().mean()

    @classmethod
    def after(cls, network: Equivariant, x: Tensor, views: Tensor) -> dict[str, Tensor]:
        with torch.no_grad():
            return {"centres": encode_views(network, x, views).mean(dim=0)}

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        squares = torch.cdist(z, self.centres.expand(len(z), -1, -1)).square()  # (batch, views, views)
        return -(-squares).log_softmax(dim=-1).diagonal(dim1=1, dim2=2).mean(dim=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class AffineGOAD(GOAD):
    """GOAD with 16 random affine maps of the plane instead of the 72 views."""

    kind: ClassVar[str] = "goad_affine"

    @classmethod
    def views_of(cls, size: int) -> Tensor:
        return affine(size)
