"""GM: 72 geometric views, and whether the network can tell which one it sees (Golan and El-Yaniv 2018, arXiv 1805.10917)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from idecode_core.baselines.rotnet import RotNet
from idecode_core.baselines.views import geometric


@dataclass(frozen=True, eq=False, kw_only=True)
class Geometric(RotNet):
    """Score: 1 - mean over the 72 views t of softmax(M(t(x)))_t.

    This is the authors' simplified normality score; their full one fits a Dirichlet distribution to the answers. A mirror
    image is one of the views, so training pictures are not mirrored at random.
    """

    kind: ClassVar[str] = "geometric"
    term: ClassVar[str] = "how badly its 72 views are told apart"
    mirrored: ClassVar[bool] = False

    @classmethod
    def views_of(cls, size: int) -> Tensor:
        return geometric(size)
