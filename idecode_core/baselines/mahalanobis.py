"""Mahalanobis distance of features from the closest class of the training set (Lee et al. 2018, arXiv 1807.03888).

All classes share one covariance, shrunk as Ledoit and Wolf do, so that fewer points than features are enough. One class
for all is what is left where there are no labels (SSD, Sehwag et al. 2021, arXiv 2103.12051, with one cluster).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from idecode_core.baselines.features import FeatureScorer, check_features
from idecode_core.baselines.on_network import OnNetwork
from idecode_core.errors import SettingError
from idecode_core.models.equivariant import Equivariant


def shared_gaussian(z: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The Gaussians of features (N, d) of classes y (N,): the mean of all (d,), L (d, d) with S^-1 = L L', and the classes'
    means (classes, d) as (mu_c - centre) L."""
    from sklearn.covariance import ledoit_wolf

    features, classes = z.double().numpy(), np.unique(y.numpy())
    means = np.stack([features[y.numpy() == c].mean(axis=0) for c in classes])  # (classes, d)
    spread = features - means[np.searchsorted(classes, y.numpy())]
    covariance, _ = ledoit_wolf(spread, assume_centered=True)
    values, vectors = np.linalg.eigh(covariance)
    if values[-1] <= 0:
        raise SettingError(
            "The features of each class are all the same, so their covariance is singular: expected several different pictures "
            "per class; add training points."
        )
    whiten = vectors / np.sqrt(np.maximum(values, 1e-12))  # (d, d)
    centre = features.mean(axis=0)
    found = (centre, whiten, (means - centre) @ whiten)
    first, second, third = (torch.from_numpy(value).float() for value in found)
    return first, second, third


def squared_distances(z: Tensor, centre: Tensor, whiten: Tensor, means: Tensor) -> Tensor:
    """(z - mu_c)' S^-1 (z - mu_c) of features (batch, d) for each class: (batch, classes)."""
    white = (z - centre) @ whiten
    return torch.cdist(white, means, compute_mode="donot_use_mm_for_euclid_dist").square()


@dataclass(frozen=True, eq=False, kw_only=True)
class Mahalanobis(FeatureScorer):
    """Score: min over classes c of (z - mu_c)' S^-1 (z - mu_c), for z = f(g(x)) of length 1."""

    kind: ClassVar[str] = "mahalanobis"
    term: ClassVar[str] = "distance from the known ones"

    centre: Tensor  # (d,): the mean of all features
    whiten: Tensor  # (d, d): L with S^-1 = L L'
    means: Tensor  # (classes, d): (mu_c - centre) L

    @classmethod
    def fit(cls, z: Tensor, y: Tensor, **parts: Any) -> Self:
        check_features(z, y, 2)
        centre, whiten, means = shared_gaussian(z, y)
        return cls(centre=centre, whiten=whiten, means=means, **parts)

    def squares(self, z: Tensor) -> Tensor:
        """Squared distances from each class: (batch, classes)."""
        return squared_distances(z.to(self.device), self.centre, self.whiten, self.means)

    def distances(self, z: Tensor) -> Tensor:
        return self.squares(z).amin(dim=1)

    def nearest(self, z: Tensor) -> Tensor:
        return self.squares(z).argmin(dim=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class MahalanobisOnce(OnNetwork):
    """The same score of x itself, for z = f(x) as the network gives it (plain, one layer)."""

    kind: ClassVar[str] = "mahalanobis_once"
    term: ClassVar[str] = Mahalanobis.term

    centre: Tensor  # (d,)
    whiten: Tensor  # (d, d)
    means: Tensor  # (classes, d)

    @classmethod
    def learned(cls, z: Tensor, y: Tensor, model: Equivariant) -> dict[str, Tensor]:
        return dict(zip(("centre", "whiten", "means"), shared_gaussian(z, y), strict=True))

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return squared_distances(z, self.centre, self.whiten, self.means).amin(dim=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitMahalanobisOnce(MahalanobisOnce):
    """The same on features of length 1: how much is seen varies with contrast, and says little of what (Mueller and Hein
    2025, arXiv 2505.18032)."""

    kind: ClassVar[str] = "unit_mahalanobis_once"

    @classmethod
    def learned(cls, z: Tensor, y: Tensor, model: Equivariant) -> dict[str, Tensor]:
        return super().learned(normalize(z, dim=-1), y, model)

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return super().of_features(normalize(z, dim=-1), logits)
