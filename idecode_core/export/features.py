"""The graph of a detector on the features of a frozen network, as `train FOLDER` makes them of photographs."""

from collections.abc import Callable

from torch import Tensor, nn

from idecode_core.baselines.features import FeatureScorer
from idecode_core.baselines.mahalanobis import Mahalanobis
from idecode_core.baselines.neighbours import Neighbours
from idecode_core.export.graph import Graph
from idecode_core.export.images import each_variant, picture_graph


def plain_squares(z: Tensor, centre: Tensor, whiten: Tensor, means: Tensor) -> Tensor:
    """`Mahalanobis.distances` in steps that the exporter can follow, as all of these."""
    white = (z - centre) @ whiten
    return (white[:, None] - means).square().sum(dim=-1).amin(dim=1)


def plain_neighbour(z: Tensor, bank: Tensor, k: int) -> Tensor:
    """`Neighbours.distances`; by products, because a difference from every feature of the bank would need far more room."""
    squares = z.square().sum(dim=-1, keepdim=True) + bank.square().sum(dim=-1) - 2 * z @ bank.T
    return squares.clamp(min=0).topk(k, dim=1, largest=False).values[:, -1].sqrt()


def plain_distances(scorer: FeatureScorer) -> Callable[[Tensor], Tensor]:
    """Features (batch, d) -> distances (batch,)."""
    if isinstance(scorer, Mahalanobis):
        return lambda z: plain_squares(z, scorer.centre, scorer.whiten, scorer.means)
    assert isinstance(scorer, Neighbours)
    return lambda z: plain_neighbour(z, scorer.bank, int(scorer.k))


class FeatureScores(nn.Module):
    """(x, parameters) -> base scores, as one network."""

    def __init__(self, scorer: FeatureScorer) -> None:
        super().__init__()
        self.model, self.transforms, self.distances = scorer.model, scorer.transforms, plain_distances(scorer)

    def forward(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, 3, size, size) in [0, 1], parameters (batch, m, ...) -> (batch, m)."""
        gx = each_variant(self.transforms, x, parameters)  # (batch * m, 3, h, w)
        scores: Tensor = self.distances(self.model(gx)).unflatten(0, parameters.shape[:2])
        return scores


def feature_graph(scorer: FeatureScorer) -> Graph:
    return picture_graph(FeatureScores(scorer), scorer.transforms, scorer.preprocessing.size)
