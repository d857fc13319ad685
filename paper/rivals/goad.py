"""GOAD: each view has a centre in feature space, and views of strange pictures miss theirs (Bergman and Hoshen 2020,
arXiv 2005.02359)."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from idecode_core.models import Equivariant
from idecode_core.training.losses import centre_triplet
from paper.rivals.one_class import OneClass, affine, encode_views, geometric

MARGIN, TRIPLET, SHORTNESS = 1.0, 0.1, 10.0
"""The margin, and the weights of the centre-triplet loss and of short features beside the cross-entropy: those of the authors'
code."""


def goad_loss(network: Equivariant, gx: Tensor, which: Tensor, learned: dict[str, Tensor]) -> Tensor:
    """Cross-entropy of the views, centre triplets and short features, for pictures in views gx (batch, m, 3, h, w)."""
    z = network.encode(gx.flatten(0, 1))  # (batch * m, d)
    labels = which.expand(len(gx), -1).flatten()
    logits = network.decode(None, z[:, None])[:, 0]
    triplet = TRIPLET * centre_triplet(z, labels, MARGIN)
    return cross_entropy(logits, labels) + triplet + SHORTNESS * z.square().mean()


def view_centres(network: Equivariant, x: Tensor, views: Tensor) -> dict[str, Tensor]:
    """c_m, the mean of f(T_m x) over training pictures x: (views, d)."""
    with torch.no_grad():
        return {"centres": encode_views(network, x, views).mean(dim=0)}


def centre_error(z: Tensor, centres: Tensor) -> Tensor:
    """Mean over the views m of -log P(m | T_m x), P(m' | z) proportional to exp(-||z - c_m'||^2): z (batch, views, d)."""
    squares = torch.cdist(z, centres.expand(len(z), -1, -1)).square()  # (batch, views, views)
    return -(-squares).log_softmax(dim=-1).diagonal(dim1=1, dim2=2).mean(dim=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class GOAD(OneClass):
    """Score: `centre_error`. The views are GM's 72."""

    kind, title, term = "goad", "GOAD", "how far its views lie from their centres"
    summary = "how badly 72 views of it find their own centres among features of known views (Bergman and Hoshen 2020)"
    mirrored, adam = False, 1e-3
    views_of, loss, after = staticmethod(geometric), staticmethod(goad_loss), staticmethod(view_centres)

    centres: Tensor  # (views, d)

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return centre_error(z, self.centres)


@dataclass(frozen=True, eq=False, kw_only=True)
class AffineGOAD(OneClass):
    """GOAD with 16 random affine maps of the plane instead of the 72 views."""

    kind, title, term = "goad_affine", "GOAD, affine maps", GOAD.term
    summary = "how badly 16 affine maps of it find their own centres among features of known ones (Bergman and Hoshen 2020)"
    mirrored, adam = False, 1e-3
    views_of, loss, after = staticmethod(affine), staticmethod(goad_loss), staticmethod(view_centres)

    centres: Tensor  # (views, d)

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return centre_error(z, self.centres)
