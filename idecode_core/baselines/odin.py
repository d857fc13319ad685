"""ODIN: the softmax at a high temperature, after a small step of x towards its label (Liang et al. 2018, arXiv 1706.02690)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from idecode_core.baselines.on_network import OnNetwork
from idecode_core.ncm import softmax_baseline

TEMPERATURE, STEP = 1000.0, 0.0014
"""The published values for CIFAR-10. The step is in units of pixels from 0 to 1: the authors' code divides the gradient of
the normalised input by the standard deviation of the pixels, which is the same. They chose it with the help of OOD data."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ODIN(OnNetwork):
    """Score: 1 - max softmax(M(x') / T), x' = x - step * sign(gradient in x of -log softmax(M(x) / T)_label).

    Two forward passes and one backward pass.
    """

    kind: ClassVar[str] = "odin"
    term: ClassVar[str] = "what the classifier leaves for other answers, at a high temperature"
    chosen: ClassVar[tuple[str, ...]] = ("temperature", "step")

    temperature: float = TEMPERATURE
    step: float = STEP

    def strangeness(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            moved = x.detach().clone().requires_grad_()
            said = self.logits(self.model.encode(moved)) / self.temperature
            loss = cross_entropy(
                said, said.argmax(dim=1), reduction="sum"
            )  # of a sum, no picture sees another
            (gradient,) = torch.autograd.grad(loss, moved)
        return super().strangeness(x - self.step * gradient.sign())

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return softmax_baseline(logits.cpu().double() / self.temperature)
