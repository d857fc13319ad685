"""The graph of a detector of pictures."""

import numpy as np
import torch
from torch import Tensor, nn

from idecode_core.export.graph import Graph, exportable
from idecode_core.image.scorer import ImageScorer


class ImageScores(nn.Module):
    """(x, parameters) -> base scores, as one network."""

    def __init__(self, scorer: ImageScorer) -> None:
        super().__init__()
        self.model, self.transforms = scorer.model, scorer.transforms
        self.ncm = exportable(scorer.base_ncm)

    def forward(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (batch, 3, size, size) in [0, 1], parameters (batch, m, ...) -> (batch, m)."""
        batch, m = parameters.shape[:2]
        # One row per variant: the exporter would fix m where an image is repeated m times.
        rows = torch.div(torch.arange(batch * m), m, rounding_mode="floor")  # (batch * m,): which image
        gx = self.transforms.apply(x[rows], parameters.flatten(0, 1)[:, None])[:, 0]  # (batch * m, 3, h, w)
        z = reference = None
        if self.model.config.pair or self.ncm.against == "x":
            z = self.model.encode(x)
            reference = self.model.decode(z, z[:, None])[:, 0]
        z_g = self.model.encode(gx).unflatten(0, (batch, m))  # (batch, m, d)
        return self.ncm(self.model.decode(z, z_g), reference, self.transforms.target(parameters), z_g)


def image_graph(scorer: ImageScorer) -> Graph:
    size = scorer.preprocessing.size
    images = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    parameters = scorer.transforms.sample(np.arange(4, dtype=np.uint64).reshape(2, 2), 3)
    batch, m = torch.export.Dim("batch"), torch.export.Dim("m")
    return Graph(
        ImageScores(scorer),
        (images, parameters),
        {"x": {0: batch}, "parameters": {0: batch, 1: m}},
        {
            "x": f"float32 (batch, 3, {size}, {size}) in [0, 1], RGB",
            "parameters": "(batch, n * variants, ...), as the transform set draws them",
        },
    )
