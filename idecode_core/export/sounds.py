"""The graph of a detector of sounds: one sound at a time, of any length."""

import numpy as np
import torch
from torch import Tensor, nn

from idecode_core.audio.scorer import AudioScorer, clip_mean
from idecode_core.export.graph import Graph, exportable
from idecode_core.scorer import Scorer


class SoundScores(nn.Module):
    """One sound's blocks and masks -> base scores, as one network."""

    def __init__(self, scorer: AudioScorer) -> None:
        super().__init__()
        self.model, self.transforms, self.ncm = scorer.model, scorer.transforms, exportable(scorer.base_ncm)

    def forward(self, x: Tensor, parameters: Tensor) -> Tensor:
        """x (blocks, bands, frames), parameters (n, blocks, masks, 2) -> (n,)."""
        n, blocks = parameters.shape[:2]
        frames, bands = self.transforms.keep(parameters)  # (n, blocks, frames), (n, blocks, bands)
        gx = x[None] * bands[..., :, None] * frames[..., None, :]  # (n, blocks, bands, frames)
        shares = self.model(gx.flatten(0, 1)).softmax(dim=-1).unflatten(0, (n, blocks))
        prediction = clip_mean(shares)[None]  # (1, n, classes)
        reference = clip_mean(self.model(x).softmax(dim=-1))[None]  # (1, classes)
        return self.ncm(prediction, reference, torch.zeros(1, 1, dtype=torch.int64))[0]


def sound_graph(scorer: Scorer) -> Graph:
    assert isinstance(scorer, AudioScorer)
    transforms = scorer.transforms
    blocks = torch.rand(
        2, transforms.bands, transforms.frames, generator=torch.Generator().manual_seed(0)
    )  # (blocks, bands, frames)
    masks = transforms.sample(np.arange(2, dtype=np.uint64)[None], 3, 2)[0]  # (n, blocks, masks, 2)
    any_blocks, n = torch.export.Dim("blocks"), torch.export.Dim("n")
    return Graph(
        SoundScores(scorer),
        (blocks, masks),
        {"x": {0: any_blocks}, "parameters": {0: n, 1: any_blocks}},
        {
            "x": "float32 (blocks, bands, frames): the standardised log-mel blocks of one sound",
            "parameters": "int64 (n, blocks, masks, 2), as the transform set draws them",
        },
    )
