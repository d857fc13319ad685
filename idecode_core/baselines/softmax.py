"""SBP, the softmax baseline: how unsure a classifier is of its answer (Hendrycks and Gimpel 2017, arXiv 1610.02136)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from idecode_core.baselines.on_network import OnNetwork
from idecode_core.ncm import softmax_baseline


@dataclass(frozen=True, eq=False, kw_only=True)
class SBP(OnNetwork):
    """Score: 1 - max over classes c of softmax(M(x))_c."""

    kind: ClassVar[str] = "sbp"
    term: ClassVar[str] = "what the classifier leaves for other answers"

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return softmax_baseline(logits.cpu().double())  # in single precision, sure answers would tie
