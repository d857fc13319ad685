"""Odds: what noise does to the differences of logits (Roth et al. 2019, arXiv 1902.04818; App. C.3).

Noise moves an attacked input back towards the class that it came from. No attacked input is needed to learn that.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from idecode_core.models import Equivariant
from idecode_core.scorers.once import OnceScorer, check_features
from paper.rivals.layers import class_named, observe, observe_all

SIZES = (0.003, 0.005, 0.008)
"""Of the noise, in pixel units, for each of normal, uniform and sign noise: those of the authors' code."""
SAMPLES = 2
"""Of each kind and size of noise; the authors draw 256, which two cores cannot."""
MOST = 1000
"""Clean inputs by which means and deviations are found, of those that are given."""
LARGEST_NOISY_BATCH = 1024


def noises(samples: int, shape: tuple[int, ...], *, generator: torch.Generator) -> Tensor:
    """Normal, uniform and sign noise of each size: (kinds, samples, 3, h, w)."""
    kinds = []
    for size in SIZES:
        normal = torch.randn(samples, *shape, generator=generator)
        uniform, sign = (2 * torch.rand(samples, *shape, generator=generator) - 1 for _ in range(2))
        kinds += [size * normal, size * uniform, size * sign.sign()]
    return torch.stack(kinds)


def alignments(logits: Tensor, noisy: Tensor) -> Tensor:
    """Mean over the samples of g_yz = [f_z(x + noise) - f_y(x + noise)] - [f_z(x) - f_y(x)], y the class that is predicted.

    logits (batch, classes), noisy (batch, kinds, samples, classes) -> (batch, kinds, classes); 0 where z is y.
    """
    moved = noisy.mean(dim=2) - logits[:, None]  # (batch, kinds, classes)
    y = logits.argmax(dim=1)[:, None, None].expand(-1, moved.shape[1], 1)
    return moved - moved.gather(2, y)


@dataclass(frozen=True, eq=False, kw_only=True)
class Odds(OnceScorer):
    """Score: max over z of the mean over kinds of noise of (g_yz(x) - mean_yz) / std_yz, by clean inputs predicted as y.

    The noise is drawn once and kept, the same for every x: a score depends on x alone, so calibration holds.
    """

    kind, title, term = "odds", "Odds", "how far noise moves the classifier towards another class"
    summary = "the largest change of a difference of logits under noise, in standard deviations of clean inputs (Roth et al. 2019)"

    model: Equivariant
    noise: Tensor  # (kinds, samples, 3, h, w)
    mean: Tensor  # (classes, kinds, classes): of g_yz over clean inputs, by the predicted y
    std: Tensor  # (classes, kinds, classes)

    @classmethod
    def fit(cls, model: Equivariant, x: Tensor, y: Tensor, **parts: Any) -> Self:
        """x (N, 3, h, w) and y (N,) are of the training side; of y only the number of classes is used."""
        check_features(x.flatten(1), y, 3)
        x = x[:MOST]
        noise = noises(SAMPLES, tuple(x.shape[1:]), generator=torch.Generator().manual_seed(0))
        classes = model.config.outputs
        blank = torch.zeros(classes, len(noise), classes)
        scorer = cls(model=model, noise=noise, mean=blank, std=torch.ones_like(blank), **parts)
        device = scorer.device
        with torch.no_grad():
            aligned = torch.cat(
                [scorer.align(part.to(device)) for part in x.split(64)]
            )  # (N, kinds, classes)
        named = observe_all(model, x).logits.argmax(dim=1).to(device)
        mean, std = scorer.mean.clone(), scorer.std.clone()
        for c in range(classes):
            of_class = (
                aligned[named == c] if (named == c).sum() > 2 else aligned
            )  # as many as the authors ask for
            mean[c], std[c] = of_class.mean(dim=0), of_class.std(dim=0).clamp_min(1e-6)
        return replace(scorer, mean=mean, std=std)

    def answer(self, x: Tensor) -> str:
        return class_named(self.model, x, self.classes)

    def align(self, x: Tensor) -> Tensor:
        """g_yz(x) under every kind of noise: (batch, kinds, classes)."""
        kinds, samples = self.noise.shape[:2]
        logits = observe(self.model, x).logits
        variants = (
            (x[:, None] + self.noise.flatten(0, 1)).clamp(0, 1).flatten(0, 1)
        )  # (batch * kinds * samples, ...)
        noisy = torch.cat([observe(self.model, part).logits for part in variants.split(LARGEST_NOISY_BATCH)])
        return alignments(logits, noisy.view(len(x), kinds, samples, -1))

    def strangeness(self, x: Tensor) -> Tensor:
        rows = []
        for part in x.split(64):
            named = observe(self.model, part).logits.argmax(dim=1)
            z_scores = ((self.align(part) - self.mean[named]) / self.std[named]).mean(
                dim=1
            )  # (batch, classes)
            others = torch.arange(z_scores.shape[1], device=x.device) != named[:, None]
            rows.append(z_scores.masked_fill(~others, -torch.inf).amax(dim=1))
        return torch.cat(rows)
