"""The graph of a detector of pictures."""

import numpy as np
import torch
from torch import Tensor, nn

from idecode_core.export.graph import Graph, exportable
from idecode_core.image.scorer import ImageScorer
from idecode_core.transforms import TransformSet


class ImageScores(nn.Module):
    """(x, parameters) -> base scores, as one network."""

    def __init__(self, scorer: ImageScorer) -> None:
        super().__init__()
        self.model, self.transforms = scorer.model, scorer.transforms
        self.ncm = exportable(scorer.base_ncm)

    def forward(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, 3, size, size) in [0, 1], parameters (batch, m, ...) -> (batch, m)."""
        gx = each_variant(self.transforms, x, parameters)  # (batch * m, 3, h, w)
        z = reference = None
        if self.model.config.pair or self.ncm.asks_x:
            z = self.model.encode(x)
            reference = self.model.decode(z, z[:, None])[:, 0]
            if self.ncm.mirrored:
                other = self.model.encode(x.flip(-1))
                reference = (reference + self.model.decode(other, other[:, None])[:, 0]) / 2
        z_g = self.model.encode(gx).unflatten(0, parameters.shape[:2])  # (batch, m, d)
        return self.ncm(self.model.decode(z, z_g), reference, self.transforms.target(parameters), z_g)


def each_variant(transforms: TransformSet, x: Tensor, parameters: Tensor) -> Tensor:
    """x (batch, 3, h, w), parameters (batch, m, ...) -> g(x), one row per variant (batch * m, 3, h, w): the exporter would fix
    m where an image is repeated m times."""
    batch, m = parameters.shape[:2]
    rows = torch.div(torch.arange(batch * m), m, rounding_mode="floor")  # (batch * m,): which image
    return transforms.apply(x[rows], parameters.flatten(0, 1)[:, None])[:, 0]


def image_graph(scorer: ImageScorer) -> Graph:
    return picture_graph(ImageScores(scorer), scorer.transforms, scorer.preprocessing.size)


def picture_graph(network: nn.Module, transforms: TransformSet, size: int) -> Graph:
    """Whatever network it is that takes pictures at `size` and parameters of `transforms`."""
    images = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    parameters = transforms.sample(np.arange(4, dtype=np.uint64).reshape(2, 2), 3)
    batch, m = torch.export.Dim("batch"), torch.export.Dim("m")
    return Graph(
        network,
        (images, parameters),
        {"x": {0: batch}, "parameters": {0: batch, 1: m}},
        {
            "x": f"float32 (batch, 3, {size}, {size}) in [0, 1], RGB",
            "parameters": "(batch, n * variants, ...), as the transform set draws them",
        },
    )
