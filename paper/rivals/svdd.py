"""OC-SVM: a one-class support vector machine on pixels (Schölkopf et al. 2001).

DeepSVDD: a network that maps the class close to one point (Ruff et al. 2018, ICML).
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idecode_core.image.features import Preprocessing
from idecode_core.models import Equivariant
from idecode_core.scorers.once import OnceScorer
from paper.rivals.one_class import Budget, OneClass, checked_pictures

NU = 0.1
"""At most this share of the training pictures lies outside (Ruff et al. 2018)."""
KEPT = 0.95
"""Share of the variance that the principal components keep (Ruff et al. 2018)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OCSVM(OnceScorer):
    """Score: rho - sum over support vectors s_i of alpha_i exp(-gamma ||s_i - t||^2), t the principal components of x.

    gamma is one over the variance of t times its dimension, scikit-learn's "scale": nothing strange is looked at to tune it.
    """

    kind, title, term = "oc_svm", "OC-SVM", "distance from the region of the class"
    summary = (
        "how far its pixels lie outside of the region that a support vector machine drew around the class"
    )

    mean: Tensor  # (p,): of the pixels
    components: Tensor  # (d, p)
    vectors: Tensor  # (s, d): support vectors
    alphas: Tensor  # (s,)
    gamma: Tensor  # (1,)
    rho: Tensor  # (1,)

    @classmethod
    def fit(cls, pictures: NDArray[np.uint8], budget: Budget | None = None, **parts: Any) -> Self:
        """From training pictures of the class (N, h, w, 3), uint8. Of the budget it needs the size only."""
        from sklearn.decomposition import PCA
        from sklearn.svm import OneClassSVM

        size = (budget or Budget()).size
        pixels = (checked_pictures(pictures, size).flatten(1).float() / 255).numpy()
        reduced = PCA(KEPT, svd_solver="full").fit(pixels)
        t = reduced.transform(pixels).astype(np.float64)
        svm = OneClassSVM(gamma="scale", nu=NU).fit(t)
        arrays = {
            "mean": reduced.mean_,
            "components": reduced.components_,
            "vectors": svm.support_vectors_,
            "alphas": svm.dual_coef_[0],
            "gamma": np.array([1 / (t.shape[1] * t.var())]),
            "rho": -svm.intercept_,
        }
        parts |= {name: torch.from_numpy(np.asarray(value)).float() for name, value in arrays.items()}
        return cls(preprocessing=Preprocessing(size), **parts)

    def strangeness(self, x: Tensor) -> Tensor:
        t = (x.flatten(1) - self.mean) @ self.components.T
        squares = torch.cdist(t, self.vectors, compute_mode="donot_use_mm_for_euclid_dist").square()
        return self.rho - torch.exp(-self.gamma * squares) @ self.alphas


AWAY_FROM_ZERO = 0.1
"""Coordinates of the centre closer to 0 than this are moved: a zero is too easy to reach (the authors' code)."""

USUAL_MEAN, USUAL_DEVIATION = 0.5, 0.2
"""Of pixel values from 0 to 1."""


def levelled(x: Tensor) -> Tensor:
    """Pictures (batch, 3, h, w) with the mean value and the mean deviation from it that pictures have on the whole (global
    contrast normalisation with the L1 norm)."""
    from_mean = x - x.mean(dim=(1, 2, 3), keepdim=True)
    deviation = from_mean.abs().mean(dim=(1, 2, 3), keepdim=True).clamp_min(1e-6)
    return USUAL_MEAN + USUAL_DEVIATION * from_mean / deviation


def distances(z: Tensor, centre: Tensor) -> Tensor:
    """Squared distances of features (batch, d) from the centre (d,): (batch,)."""
    return (z - centre).square().sum(dim=1)


def as_it_is(size: int) -> Tensor:
    """x itself is the only view: (1, 3, 3)."""
    return torch.eye(3, dtype=torch.float64)[None]


def centre_loss(network: Equivariant, gx: Tensor, which: Tensor, learned: dict[str, Tensor]) -> Tensor:
    return distances(network.encode(levelled(gx[:, 0])), learned["centre"]).mean()


@dataclass(frozen=True, eq=False, kw_only=True)
class DeepSVDD(OneClass):
    """Score: ||f(x) - c||^2, where c is the mean of f over the class before training, and training minimises it.

    x has the same brightness and contrast as every other picture, as in the authors' preprocessing. Biases and the scales of
    normalisation stay as they are: with them, one constant map would bring every picture to c. Adam at the published 1e-4.
    """

    kind, title, term = "deep_svdd", "DeepSVDD", "distance from the centre of the class"
    summary = "squared distance of the network's features from the centre of the class (Ruff et al. 2018)"
    adam = 1e-4
    views_of = staticmethod(as_it_is)
    loss = staticmethod(centre_loss)

    centre: Tensor  # (d,)

    @staticmethod
    def before(network: Equivariant, x: Tensor) -> dict[str, Tensor]:
        for module in network.backbone.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.requires_grad_(False)
            elif isinstance(module, nn.Conv2d) and module.bias is not None:
                module.bias.requires_grad_(False)
        with torch.no_grad():
            centre = network.encode(levelled(x)).mean(dim=0)  # with the batch's statistics, as in training
        small = centre.abs() < AWAY_FROM_ZERO
        return {"centre": torch.where(small, AWAY_FROM_ZERO * torch.sign(centre + 1e-12), centre)}

    def strangeness(self, x: Tensor) -> Tensor:
        return super().strangeness(levelled(x))

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return distances(z[:, 0], self.centre)
