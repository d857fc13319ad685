"""Small defects: the patch of a picture that is farthest from all patches of the training set (PatchCore, Roth et al. 2022,
arXiv 2106.08265).

Features of two middle layers of a frozen network describe each place of g(x) and its surroundings; a bank keeps those of the
proper training set, thinned out so that no kept one is far from those that were left out. The base score A(X_tr, x; g) (Eq. 2)
is the largest distance of a place from its nearest neighbour in the bank, and the distances of all places are a map.

Where every picture shows the same thing at the same place, `Places` compares each place with that place alone (PaDiM, Defard et al.
2020, arXiv 2011.08785): it also sees that something is missing, which looks like what is known from elsewhere.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idecode_core.models.equivariant import ModelConfig
from idecode_core.scorer import Inspected, prepared
from idecode_core.scorers.features import FeatureScorer, Frozen, blank
from idecode_core.scorers.once import check_features

BANK = 2000
"""Patches that are kept."""
CANDIDATES = 20_000
"""Patches that these are chosen from."""
PROJECTED = 64
"""Dimensions in which the choice is made: distances are nearly the same there (Johnson and Lindenstrauss 1984)."""
FEWEST = 2
SHRUNK, FLOOR = 0.01, 0.1
"""Of the mean variance, added to each; of the mean spread of a place, added to each."""


class Middle(Frozen):
    """Pictures in [0, 1] (batch, 3, h, w) -> features of each place (batch, rows, columns, d): of two middle layers, each at
    length 1, averaged over a place and its neighbours."""

    def forward(self, x: Tensor) -> Tensor:
        fine, coarse = (
            nn.functional.avg_pool2d(layer, 3, stride=1, padding=1, count_include_pad=False)
            for layer in self.backbone.middle(self.normalise(x))  # type: ignore[operator]
        )
        coarse = nn.functional.interpolate(coarse, size=fine.shape[-2:], mode="bilinear", align_corners=False)
        both = [nn.functional.normalize(layer, dim=1) for layer in (fine, coarse)]
        return torch.cat(both, dim=1).permute(0, 2, 3, 1)


def coreset(z: Tensor, size: int, generator: np.random.Generator) -> Tensor:
    """Places (size,) of rows of z (N, d) such that none of the others is far from all of them: each next one is the farthest
    from those before (Gonzalez 1985)."""
    if len(z) <= size:
        return torch.arange(len(z))
    if z.shape[1] > PROJECTED:
        z = z @ torch.from_numpy(generator.normal(size=(z.shape[1], PROJECTED))).float()
    chosen = [int(generator.integers(len(z)))]
    nearest = (z - z[chosen[0]]).square().sum(dim=1)
    while len(chosen) < size:
        chosen.append(int(nearest.argmax()))
        nearest = torch.minimum(nearest, (z - z[chosen[-1]]).square().sum(dim=1))
    return torch.tensor(chosen)


@dataclass(frozen=True, eq=False, repr=False)
class InspectedPatches(Inspected):
    """Also how far each place of the picture itself is from the nearest known patch."""

    distances: NDArray[np.float64]  # (rows, columns)


def blank_middle(config: ModelConfig) -> Frozen:
    return blank(config, Middle)


def strangest_place(scorer: "Patches | Places", z: Tensor) -> Tensor:
    """The largest of the distances of all places, which are a map: (batch,)."""
    return scorer.to_known(z).flatten(1).amax(dim=1)


def inspect_with_map(
    scorer: "Patches | Places", sample: Any, *, n: int = 1, seed: int = 0
) -> InspectedPatches:
    (point,) = prepared(scorer, sample, seed)
    seen = FeatureScorer.inspect(scorer, point, n=n, seed=seed)
    with torch.inference_mode():
        map_of_x = scorer.to_known(scorer.model(scorer.tensor([point])))[0].cpu().double().numpy()
    return InspectedPatches(seen.score_vector, seen.variants, seen.terms, map_of_x)


@dataclass(frozen=True, eq=False, kw_only=True)
class Patches(FeatureScorer):
    """Score: max over places of the distance of their features from the nearest in the bank."""

    kind, title = "patches", "the strangest patch of each draw"
    term = "distance of its strangest patch from known ones"
    summary = (
        "the largest distance of a place of g(x), described by two middle layers of a frozen network, from the nearest patch of "
        "the training set (PatchCore, Roth et al. 2022)"
    )

    blank, distances, inspect = staticmethod(blank_middle), strangest_place, inspect_with_map

    bank: Tensor  # (patches, d)
    labels: Tensor  # (patches,): the classes of the pictures that they are from

    @classmethod
    def fit(cls, z: Tensor, y: Tensor, *, size: int = BANK, **parts: Any) -> Self:
        """From features of patches (N, d) of the proper training set, and their pictures' classes (N,)."""
        check_features(z, y, FEWEST)
        kept = coreset(z, size, np.random.default_rng(len(z)))
        return cls(bank=z[kept].half().float(), labels=y[kept], **parts)  # stored in half the room

    def to_known(self, z: Tensor) -> Tensor:
        """Features (batch, rows, columns, d) -> distances of each place from the nearest known patch (batch, rows, columns)."""
        near = [torch.cdist(view.flatten(0, 1), self.bank).amin(dim=1) for view in z.to(self.device)]
        distances: Tensor = torch.stack(near).unflatten(1, z.shape[1:3])
        return distances

    def nearest(self, z: Tensor) -> Tensor:
        """The class that most places lie closest to."""
        labels = [
            self.labels[torch.cdist(view.flatten(0, 1), self.bank).argmin(dim=1)]
            for view in z.to(self.device)
        ]
        most: Tensor = torch.stack(labels).mode(dim=1).values
        return most


@dataclass(frozen=True, eq=False, kw_only=True)
class Places(FeatureScorer):
    """Score: max over places of |(z - mean there) L| / spread there, with S^-1 = L L' for the covariance S that all places share.
    It knows no classes."""

    kind, title = "places", "the strangest place of each draw"
    term = "distance of its strangest place from what is known there"
    summary = (
        "the largest Mahalanobis distance of a place of g(x), described by two middle layers of a frozen network, from the same "
        "place of the training pictures, in units of that place's spread (after PaDiM, Defard et al. 2020)"
    )

    blank, distances, inspect = staticmethod(blank_middle), strangest_place, inspect_with_map

    mean: Tensor  # (rows, columns, d)
    whiten: Tensor  # (d, d)
    spread: Tensor  # (rows, columns)

    @classmethod
    def fit(cls, z: Tensor, y: Tensor, **parts: Any) -> Self:
        """From features of all places (N, rows, columns, d) of the proper training set."""
        check_features(z.flatten(1), y, FEWEST)
        mean = z.mean(dim=0)
        off = (z - mean).flatten(0, 2)
        covariance = (off.T @ off / len(off)).double()
        covariance += SHRUNK * covariance.diagonal().mean() * torch.eye(len(covariance), dtype=torch.float64)
        whiten = torch.linalg.cholesky(torch.linalg.inv(covariance)).float()
        spread = ((z - mean) @ whiten).square().mean(dim=(0, 3)).sqrt()
        return cls(
            mean=mean, whiten=whiten, spread=spread + FLOOR * spread.mean(), **(parts | {"classes": ()})
        )

    def to_known(self, z: Tensor) -> Tensor:
        """Features (batch, rows, columns, d) -> distances from the mean of the same place (batch, rows, columns)."""
        distances: Tensor = ((z.to(self.device) - self.mean) @ self.whiten).norm(dim=-1) / self.spread
        return distances

    def nearest(self, z: Tensor) -> Tensor:
        return torch.zeros(len(z), dtype=torch.long, device=self.device)


def thinned(z: Tensor, views: int, generator: np.random.Generator) -> Tensor:
    """Of each view (N, draws, rows, columns, d) as many random places as `views` of them may have: (N, draws, places, d)."""
    z = z.flatten(2, 3)
    places = max(4, CANDIDATES // max(1, views))
    chosen = generator.permuted(np.tile(np.arange(z.shape[2]), (*z.shape[:2], 1)), axis=2)[..., :places]
    return z.gather(2, torch.from_numpy(chosen)[..., None].expand(-1, -1, -1, z.shape[-1])).half()
