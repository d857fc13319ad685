"""ViM: what features have outside of the space that training features fill, as one more logit (Wang et al. 2022,
arXiv 2203.10807)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from idecode_core.errors import SettingError
from idecode_core.models.equivariant import Equivariant
from idecode_core.scorers.once import OnNetwork, logits


def principal(d: int) -> int:
    """Dimensions that count as filled, of features with d: as the authors choose them.

    >>> principal(2048), principal(768), principal(256)
    (1000, 512, 128)
    """
    return 1000 if d >= 2048 else 512 if d >= 768 else d // 2


@dataclass(frozen=True, eq=False, kw_only=True)
class ViM(OnNetwork):
    """Score: alpha * |R'(z - o)| - log sum exp(M(x)).

    o = -W^+ b is where all logits of the last layer W z + b vanish. R spans the directions in which the training features,
    seen from o, spread least. alpha makes the first term as large as the largest logit, on average over training points.
    """

    kind, title = "vim", "ViM"
    term = "what does not fit what was learned, less what speaks for any class"
    summary = "length of the features outside of the space of training features, less the evidence for any class (Wang et al. 2022)"

    origin: Tensor  # (d,): o
    residual: Tensor  # (d, d - principal): R
    alpha: Tensor  # (1,)

    @classmethod
    def learned(cls, z: Tensor, y: Tensor, model: Equivariant) -> dict[str, Tensor]:
        head = model.head
        if not isinstance(head, nn.Linear):
            raise SettingError(
                "ViM needs the weights of a last linear layer on the features: expected a network with a linear head, got one "
                "with a hidden layer; choose another network or another method."
            )
        w, b = head.weight.detach().cpu().double(), head.bias.detach().cpu().double()
        origin = -torch.linalg.pinv(w) @ b
        centred = z.double() - origin
        _, vectors = torch.linalg.eigh(centred.T @ centred / len(z))  # rising
        residual = vectors[:, : z.shape[1] - principal(z.shape[1])]
        virtual = (centred @ residual).norm(dim=1).mean()
        largest = logits(model, z.to(head.weight.device)).detach().amax(dim=1).cpu().double().mean()
        if not virtual > 1e-5 * centred.norm(dim=1).mean():
            raise SettingError(
                "The training features fill no more than half of their dimensions, so ViM has nothing to measure: expected "
                "features of different pictures; add training points."
            )
        return {
            "origin": origin.float(),
            "residual": residual.float().contiguous(),
            "alpha": (largest / virtual).float()[None],
        }

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        virtual: Tensor = self.alpha * ((z - self.origin) @ self.residual).norm(dim=1)
        return virtual - logits.logsumexp(dim=-1)
