"""A network that has heard a lot of music: features of sounds where there are too few clips to learn them from.

The first four of the five convolutions of MTT_vgg in musicnn (Pons and Serra 2019, arXiv 1909.06654; ISC licence), which names
tags of MagnaTagATune's 25,863 clips of music (Law et al. 2009). Its weights are bundled, in half precision;
`python -m tools.make_music_network` writes the same file again from the package.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d

from idecode_core.data import EMBEDDED
from idecode_core.models.pieces import with_weights

WEIGHTS = EMBEDDED / "music-network.safetensors"
CHANNELS = 128
POOLS = (((4, 1), (2, 2)), ((2, 2), (2, 2)), ((2, 2), (2, 2)), ((2, 2), (2, 2)))
"""Size and step of the pool after each convolution, in frames and bands."""
READ_FROM = 2
"""The first layer whose features are read: edges and onsets say little of what sounds."""


class MusicNetwork(nn.Module):
    """Four times (3x3 convolution, ReLU, batch norm, max pool)."""

    def __init__(self) -> None:
        super().__init__()
        self.input_norm = nn.BatchNorm2d(1, eps=1e-3)
        inputs = (1, *(CHANNELS for _ in POOLS[1:]))
        self.convolutions = nn.ModuleList(nn.Conv2d(c, CHANNELS, 3, padding=1) for c in inputs)
        self.norms = nn.ModuleList(nn.BatchNorm2d(CHANNELS, eps=1e-3) for _ in POOLS)

    def forward(self, decibels: Tensor) -> Tensor:
        """Log-mel blocks in dB (batch, 96, frames) -> mean, spread over time and mean peak of each channel of the last two layers:
        (batch, 768)."""
        compressed = (1e4 * 10 ** (decibels / 10) + 1).log10()
        x = self.input_norm(compressed.transpose(1, 2)[:, None])  # (batch, 1, frames, bands)
        read = []
        for layer, (convolution, norm, pool) in enumerate(
            zip(self.convolutions, self.norms, POOLS, strict=True)
        ):
            x = max_pool2d(norm(convolution(x).relu()), *pool)  # (batch, 128, frames, bands)
            if layer >= READ_FROM:
                over_time = x.mean(dim=3)  # (batch, 128, frames)
                read += [over_time.mean(dim=2), over_time.std(dim=2), x.amax(dim=3).mean(dim=2)]
        return torch.cat(read, dim=1)


def music_network() -> MusicNetwork:
    """With the bundled weights."""
    from safetensors.torch import load_file

    weights = {name: value.float() for name, value in load_file(WEIGHTS).items()}
    return with_weights(MusicNetwork, weights).eval()
