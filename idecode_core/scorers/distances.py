"""Mahalanobis distance of features from the closest class of the training set (Lee et al. 2018, arXiv 1807.03888).

All classes share one covariance, shrunk as Ledoit and Wolf do, so that fewer points than features are enough. One class
for all is what is left where there are no labels (SSD, Sehwag et al. 2021, arXiv 2103.12051, with one cluster).

Distance of features from their k-th nearest neighbour in the training set (Sun et al. 2022, arXiv 2204.06507).

ViM: what features have outside of the space that training features fill, as one more logit (Wang et al. 2022,
arXiv 2203.10807).
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from idecode_core.errors import SettingError
from idecode_core.models.equivariant import Equivariant
from idecode_core.scorer import chunks, prepared
from idecode_core.scorers.features import FeatureScorer
from idecode_core.scorers.once import OnceScorer, OnNetwork, check_features, logits


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
    arrays = (centre, whiten, (means - centre) @ whiten)
    return tuple(torch.from_numpy(array).float() for array in arrays)  # type: ignore[return-value]


def squared_distances(z: Tensor, centre: Tensor, whiten: Tensor, means: Tensor) -> Tensor:
    """(z - mu_c)' S^-1 (z - mu_c) of features (batch, d) for each class: (batch, classes)."""
    white = (z - centre) @ whiten
    return torch.cdist(white, means, compute_mode="donot_use_mm_for_euclid_dist").square()


def gaussian_fields(z: Tensor, y: Tensor) -> dict[str, Tensor]:
    return dict(zip(("centre", "whiten", "means"), shared_gaussian(z, y), strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class Mahalanobis(FeatureScorer):
    """Score: min over classes c of (z - mu_c)' S^-1 (z - mu_c), for z = f(g(x)) of length 1."""

    kind, title, term = "mahalanobis", "Mahalanobis distance of each draw", "distance from the known ones"
    summary = (
        "the Mahalanobis distance of M's features of g(x), at length 1, from the closest class of the training set (Lee et al. "
        "2018), M being a frozen network"
    )

    centre: Tensor  # (d,): the mean of all features
    whiten: Tensor  # (d, d): L with S^-1 = L L'
    means: Tensor  # (classes, d): (mu_c - centre) L

    @classmethod
    def fit(cls, z: Tensor, y: Tensor, **parts: Any) -> Self:
        check_features(z, y, 2)
        parts |= gaussian_fields(z, y)
        return cls(**parts)

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

    kind, title, term = "mahalanobis_once", "Mahalanobis distance", Mahalanobis.term
    summary = "squared Mahalanobis distance of the network's features from those of the closest class (Lee et al. 2018)"

    centre: Tensor  # (d,)
    whiten: Tensor  # (d, d)
    means: Tensor  # (classes, d)

    @classmethod
    def learned(cls, z: Tensor, y: Tensor, model: Equivariant) -> dict[str, Tensor]:
        return gaussian_fields(z, y)

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return squared_distances(z, self.centre, self.whiten, self.means).amin(dim=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitMahalanobisOnce(OnNetwork):
    """The same on features of length 1: how much is seen varies with contrast, and says little of what (Mueller and Hein
    2025, arXiv 2505.18032)."""

    kind, title, term = "unit_mahalanobis_once", "Mahalanobis distance, length 1", Mahalanobis.term
    summary = (
        "squared Mahalanobis distance of the network's features, at length 1, from those of the closest class (Mueller and Hein "
        "2025)"
    )

    centre: Tensor  # (d,)
    whiten: Tensor  # (d, d)
    means: Tensor  # (classes, d)

    @classmethod
    def learned(cls, z: Tensor, y: Tensor, model: Equivariant) -> dict[str, Tensor]:
        return gaussian_fields(normalize(z, dim=-1), y)

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return squared_distances(normalize(z, dim=-1), self.centre, self.whiten, self.means).amin(dim=1)


TURNS = 4
"""Quarter turns, x as it is among them."""
ENOUGH = 12_000
"""Training points that the Gaussians of turned pictures are learned from, evenly spaced among more."""
AT_ONCE = 256
"""Pictures that are open at once."""


def turned(model: Equivariant, x: Tensor) -> Tensor:
    """Features of x (batch, 3, h, h) by each quarter turn: (batch, TURNS, d)."""
    gx = torch.stack([x.rot90(k, dims=(2, 3)) for k in range(TURNS)], dim=1)  # (batch, TURNS, 3, h, h)
    z: Tensor = model.encode(gx.flatten(0, 1)).unflatten(0, gx.shape[:2])
    return z


@torch.no_grad()
def _turned(network: Any, samples: Any) -> Tensor:
    """Those of pictures as an `ImageScorer` takes them, on the CPU."""
    return turned(network.model, network.tensor(list(prepared(network, samples, 0)))).cpu()


@dataclass(frozen=True, eq=False, kw_only=True)
class TurnedMahalanobisOnce(OnceScorer):
    """Score: sum over the four quarter turns g of min over classes c of (z - mu_gc)' S_g^-1 (z - mu_gc), for z the mean of f(g(x)) and
    f(g(mirror image of x)) at length 1, among training pictures that were turned alike: eight passes (docs/evidence.md).

    Eq. 2 said by features: M is equivariant where g(x) lies among training pictures that g was applied to.
    """

    kind, title = "turned_mahalanobis_once", "Mahalanobis distance, turned and mirrored"
    term = "distance from the known ones, turned alike"
    summary = (
        "squared Mahalanobis distances of the network's features of x and its mirror image, at length 1, from those of the closest "
        "class, summed over the four quarter turns, each among training pictures turned alike"
    )

    model: Equivariant
    centre: Tensor  # (TURNS, d)
    whiten: Tensor  # (TURNS, d, d)
    means: Tensor  # (TURNS, classes, d)

    @classmethod
    def fit(cls, network: Any, samples: Any, y: Tensor) -> Self:
        """On the network of an `ImageScorer`, from pictures of its proper training set and their classes (N,)."""
        kept = np.linspace(0, len(y) - 1, min(len(y), ENOUGH)).round().astype(int)
        z = torch.cat(
            [_turned(network, [samples[i] for i in some]) for some in chunks(kept, AT_ONCE)]
        )  # (N, TURNS, d)
        check_features(z.flatten(1), y[kept], 2)
        gaussians = zip(
            *(shared_gaussian(normalize(z[:, k], dim=-1), y[kept]) for k in range(TURNS)), strict=True
        )
        centre, whiten, means = (torch.stack(tensors) for tensors in gaussians)
        return cls(
            model=network.model,
            centre=centre,
            whiten=whiten.half().float(),  # half precision, so that it is stored in half the room
            means=means,
            preprocessing=network.preprocessing,
            device=network.device,
        )

    def strangeness(self, x: Tensor) -> Tensor:
        both = turned(self.model, x) + turned(self.model, x.flip(-1))
        z = normalize(both, dim=-1).unbind(dim=1)
        gaussians = zip(z, self.centre, self.whiten, self.means, strict=True)
        nearest = [squared_distances(*of_turn).amin(dim=1) for of_turn in gaussians]
        return torch.stack(nearest).sum(dim=0)


K = 5
"""Which neighbour: measured on development data (research/feature_choice.py, docs/your-own-data.md)."""
PUBLISHED_K = 50
"""For CIFAR-10, with all training features in the bank."""
MOST = 20_000
"""Features that are kept; more are thinned out evenly."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Neighbours(FeatureScorer):
    """Score: the distance of z = f(g(x)), of length 1, from the k-th nearest feature of the training set."""

    kind, title = "neighbours", "distance from a near neighbour, of each draw"
    term = "distance from the most similar known ones"
    summary = (
        "the distance of M's features of g(x), at length 1, from their 5th nearest neighbour in the training set (Sun et al. "
        "2022), M being a frozen network"
    )

    bank: Tensor  # (N, d)
    labels: Tensor  # (N,): the classes of the bank
    k: Tensor  # (1,)

    @classmethod
    def fit(cls, z: Tensor, y: Tensor, *, k: int = K, **parts: Any) -> Self:
        check_features(z, y, k)
        kept = torch.linspace(0, len(z) - 1, min(len(z), MOST)).round().long()
        bank = z[kept].half().float()  # half precision, so that it is stored in half the room
        return cls(bank=bank, labels=y[kept], k=torch.tensor([k]), **parts)

    def distances(self, z: Tensor) -> Tensor:
        return torch.cdist(z.to(self.device), self.bank).kthvalue(int(self.k), dim=1).values

    def nearest(self, z: Tensor) -> Tensor:
        return self.labels[torch.cdist(z.to(self.device), self.bank).argmin(dim=1)]


@dataclass(frozen=True, eq=False, kw_only=True)
class NeighboursOnce(OnNetwork):
    """The same score of x itself as published: k = 50, and all training features are kept."""

    kind, title, term = "neighbours_once", "kNN", Neighbours.term
    summary = (
        "distance of the network's features, at length 1, from their 50th nearest neighbour (Sun et al. 2022)"
    )
    fewest = PUBLISHED_K

    bank: Tensor  # (N, d)
    k: int = PUBLISHED_K

    @classmethod
    def learned(cls, z: Tensor, y: Tensor, model: Equivariant) -> dict[str, Tensor]:
        return {"bank": normalize(z, dim=-1).half().float()}  # stored in half the room

    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        return torch.cdist(normalize(z, dim=-1), self.bank).kthvalue(self.k, dim=1).values


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
