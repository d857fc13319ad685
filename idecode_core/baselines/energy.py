"""Energy: how little evidence a classifier finds for all its classes together (Liu et al. 2020, arXiv 2010.03759)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from idecode_core.baselines.on_network import OnNetwork


@dataclass(frozen=True, eq=False, kw_only=True)
class Energy(OnNetwork):
    """Score: -log sum over classes c of exp(M(x)_c), which is the published energy at its temperature of 1."""

    kind: ClassVar[str] = "energy"
    term: ClassVar[str] = "how little speaks for any class"

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return -logits.logsumexp(dim=-1)
