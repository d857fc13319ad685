"""CSI: contrastive learning in which a turned picture counts as another picture (Tack et al. 2020, arXiv 2007.08176)."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from idecode_core.models import Equivariant
from paper.rivals.one_class import Draw, OneClass, encode_views, moved, seen_in

TEMPERATURE = 0.5
EMBEDDED = 128
"""Outputs of the projection; the four after them name the turn."""


def contrast(a: Tensor, b: Tensor) -> Tensor:
    """SimCLR's NT-Xent (Chen et al. 2020): a_i and b_i (batch, d) are two sights of one thing, all others are others."""
    both = normalize(torch.cat([a, b]), dim=1)
    alike = both @ both.T / TEMPERATURE
    alike = alike.masked_fill(torch.eye(len(both), dtype=torch.bool, device=both.device), -torch.inf)
    partner = torch.arange(len(both), device=both.device).roll(len(a))
    return cross_entropy(alike, partner)


def recoloured(x: Tensor, generator: torch.Generator) -> Tensor:
    """Random brightness, contrast and saturation of pictures (batch, 3, h, w) in [0, 1], one in five without colour."""
    light, contrast_, colour = torch.empty(3, len(x), 1, 1, 1).uniform_(0.6, 1.4, generator=generator)
    colour = torch.where(torch.rand(len(x), 1, 1, 1, generator=generator) < 0.2, 0.0, colour)
    x = x * light
    x = (x - x.mean(dim=(1, 2, 3), keepdim=True)) * contrast_ + x.mean(dim=(1, 2, 3), keepdim=True)
    grey = x.mean(dim=1, keepdim=True)
    return (grey + (x - grey) * colour).clamp(0, 1)


def sight(x: Tensor, generator: torch.Generator) -> Tensor:
    """One random look at each picture: a part of it (8 to 100 % of the area), mirrored or not, in other colours."""
    size = x.shape[-1]
    zoom = torch.empty(len(x), dtype=torch.float64).uniform_(0.08, 1, generator=generator).sqrt()
    matrices = torch.eye(3, dtype=torch.float64).repeat(len(x), 1, 1)
    matrices[:, 0, 0] = matrices[:, 1, 1] = zoom
    room = (size * (1 - zoom))[:, None]
    matrices[:, :2, 2] = room * torch.rand(len(x), 2, dtype=torch.float64, generator=generator)
    matrices = moved(len(x), size, True, generator)[:, 0] @ matrices
    return recoloured(seen_in(x, matrices[:, None])[:, 0], generator)


def csi_loss(network: Equivariant, gx: Tensor, which: Tensor, learned: dict[str, Tensor]) -> Tensor:
    """`contrast` of first and second sights, whose turns gx has, and the cross-entropy of the turns."""
    answers = network.decode(None, network.encode(gx.flatten(0, 1))[:, None])[:, 0]
    z, logits = answers[:, :EMBEDDED], answers[:, EMBEDDED:]
    half = len(z) // 2  # of gx: first sights, then second ones
    return contrast(z[:half], z[half:]) + cross_entropy(logits, which.expand(len(gx), -1).flatten())


@dataclass(frozen=True, eq=False, kw_only=True)
class CSI(OneClass):
    """Score: -sum over the four turns r of w_r max_m cos(z_r(x), z_r(x_m)) ||z_r(x)|| + v_r M(r(x))_r, over training
    pictures x_m; w_r and v_r make both terms 1 on average over training pictures.

    The authors also average over random crops of x, which we leave out, and take the turn from the features alone, where
    ours shares the hidden layer of the projection.
    """

    kind, title, term = "csi", "CSI", "how unlike the known pictures it is"
    summary = "minus likeness to the most similar known picture and certainty of the turn, over four turns (Tack et al. 2020)"
    hidden, outputs = 128, EMBEDDED + 4
    loss = staticmethod(csi_loss)

    bank: Tensor  # (4, m, d): z_r(x_m), each of length 1
    weights: Tensor  # (2, 4): w and v

    @classmethod
    def shown(
        cls, draw: Draw, generator: torch.Generator, views: Tensor, batch: int
    ) -> tuple[Tensor, Tensor]:
        """Two sights of each picture, each in all four turns."""
        x = draw(max(2, batch // (2 * len(views))))
        sights = torch.cat([sight(x, generator), sight(x, generator)])
        return seen_in(sights, views.expand(len(sights), -1, -1, -1)), torch.arange(len(views))

    @staticmethod
    def after(network: Equivariant, x: Tensor, views: Tensor) -> dict[str, Tensor]:
        with torch.no_grad():
            answers = network.decode(None, encode_views(network, x, views))  # (m, 4, outputs)
        z, named = halves(answers)
        means = torch.stack([z.norm(dim=2).mean(dim=0), named.mean(dim=0)])  # (2, 4)
        return {"bank": normalize(z, dim=2).transpose(0, 1).contiguous(), "weights": 1 / means}

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        embedded, named = halves(logits)
        unit = normalize(embedded, dim=2).transpose(0, 1)  # (4, batch, d)
        closest = (unit @ self.bank.transpose(1, 2)).amax(dim=2).T  # (batch, 4)
        w, v = self.weights
        likeness: Tensor = w * closest * embedded.norm(dim=2) + v * named  # (batch, 4)
        return -likeness.sum(dim=1)


def halves(answers: Tensor) -> tuple[Tensor, Tensor]:
    """Answers (batch, 4, outputs) -> projections (batch, 4, d) and the logit of each view's own turn (batch, 4)."""
    return answers[..., :EMBEDDED], answers[..., EMBEDDED:].diagonal(dim1=1, dim2=2)
