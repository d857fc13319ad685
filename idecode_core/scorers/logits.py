"""SBP, the softmax baseline: how unsure a classifier is of its answer (Hendrycks and Gimpel 2017, arXiv 1610.02136).

Energy: how little evidence a classifier finds for all its classes together (Liu et al. 2020, arXiv 2010.03759).

ODIN: the softmax at a high temperature, after a small step of x towards its label (Liang et al. 2018, arXiv 1706.02690).
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from idecode_core.ncm import softmax_baseline
from idecode_core.scorers.once import OnNetwork


@dataclass(frozen=True, eq=False, kw_only=True)
class SBP(OnNetwork):
    """Score: 1 - max over classes c of softmax(M(x))_c."""

    kind, title, term = "sbp", "SBP", "what the classifier leaves for other answers"
    summary = "1 less the largest share that the classifier gives to a class (Hendrycks and Gimpel 2017)"

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return softmax_baseline(logits.cpu().double())  # in single precision, sure answers would tie


@dataclass(frozen=True, eq=False, kw_only=True)
class Energy(OnNetwork):
    """Score: -log sum over classes c of exp(M(x)_c), which is the published energy at its temperature of 1."""

    kind, title, term = "energy", "Energy", "how little speaks for any class"
    summary = (
        "minus the log of the evidence that the classifier finds for all classes together (Liu et al. 2020)"
    )

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return -logits.logsumexp(dim=-1)


TEMPERATURE, STEP = 1000.0, 0.0014
"""The published values for CIFAR-10. The step is in units of pixels from 0 to 1: the authors' code divides the gradient of
the normalised input by the standard deviation of the pixels, which is the same. They chose it with the help of OOD data."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ODIN(OnNetwork):
    """Score: 1 - max softmax(M(x') / T), x' = x - step * sign(gradient in x of -log softmax(M(x) / T)_label).

    Two forward passes and one backward pass.
    """

    kind, title = "odin", "ODIN"
    term = "what the classifier leaves for other answers, at a high temperature"
    summary = "1 less the largest share at a high temperature, after a small step of x towards its label (Liang et al. 2018)"

    temperature: float = TEMPERATURE
    step: float = STEP

    def strangeness(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            moved = x.detach().clone().requires_grad_()
            logits = self.logits(self.model.encode(moved)) / self.temperature
            # a sum: no picture sees another
            loss = cross_entropy(logits, logits.argmax(dim=1), reduction="sum")
            (gradient,) = torch.autograd.grad(loss, moved)
        return super().strangeness(x - self.step * gradient.sign())

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return softmax_baseline(logits.cpu().double() / self.temperature)
