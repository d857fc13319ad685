"""RotNet: can the network tell how the picture was turned? (Gidaris et al. 2018, arXiv 1803.07728; as a one-class
detector Golan and El-Yaniv 2018, Hendrycks et al. 2019)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import cross_entropy

from idecode_core.baselines.one_class import OneClass
from idecode_core.baselines.views import quarter_turns
from idecode_core.models import Equivariant


def right_answers(logits: Tensor) -> Tensor:
    """The softmax probability of each view's own class: logits (batch, views, views) -> (batch, views)."""
    found: Tensor = logits.softmax(dim=-1).diagonal(dim1=1, dim2=2)
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class RotNet(OneClass):
    """Score: 1 - mean over the four quarter turns r of softmax(M(r(x)))_r."""

    kind: ClassVar[str] = "rotnet"
    term: ClassVar[str] = "how badly its turns are told apart"

    @classmethod
    def views_of(cls, size: int) -> Tensor:
        return quarter_turns(size)

    @classmethod
    def loss(cls, network: Equivariant, gx: Tensor, which: Tensor, learned: dict[str, Tensor]) -> Tensor:
        z = network.encode(gx.flatten(0, 1)).unflatten(0, gx.shape[:2])
        return cross_entropy(network.decode(None, z).flatten(0, 1), which.expand(len(gx), -1).flatten())

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return 1 - right_answers(logits).mean(dim=1)
