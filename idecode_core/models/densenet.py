"""A DenseNet for CPUs: every layer sees the outputs of all layers before it (Huang et al. 2017, arXiv 1608.06993).

It halves the side at once and has few layers, without the bottlenecks that all of torchvision's have and whose many small
steps keep CPUs waiting. A shipped detector names its tensors after the modules here, so they keep their names.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, relu

from idecode_core.models.backbones import convolution, whiten

GROWTH = 48


class DenseLayer(nn.Module):
    """x -> (x, GROWTH new features)."""

    def __init__(self, c_in: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(c_in), convolution(c_in, GROWTH)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.conv(relu(self.norm(x)))], dim=1)


class Transition(nn.Module):
    """Half the side, fewer channels. Pooling first is the same as pooling last (both are linear) at a quarter of the work."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(c_in), convolution(c_in, c_out, kernel=1)

    def forward(self, x: Tensor) -> Tensor:
        halved: Tensor = self.conv(avg_pool2d(relu(self.norm(x)), 2))
        return halved


class CompactDenseNet(nn.Module):
    """Images (batch, 3, h, w) -> features (batch, out_features): Compact's whitening stem, 16 x 16 positions after it, then
    blocks of 2, 4 and 4 layers; a block is a module of `groups` and ends with the transition to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 24, 2), nn.ReLU(), convolution(24, 64, stride=2))
        channels = 64
        blocks = []
        for count, is_last in ((2, False), (4, False), (4, True)):
            inside: list[nn.Module] = [DenseLayer(channels + i * GROWTH) for i in range(count)]
            channels += count * GROWTH
            if is_last:
                inside += [nn.BatchNorm2d(channels), nn.ReLU()]
            else:
                inside.append(Transition(channels, channels // 2))
                channels //= 2
            blocks.append(nn.Sequential(*inside))
        self.groups = nn.Sequential(*blocks)
        self.out_features = channels

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.groups(self.stem(x)).mean(dim=(2, 3))
        return features

    def whiten(self, x: Tensor) -> None:
        """Set the first layer by the 2x2 patches of normalised images x (batch, 3, h, w)."""
        first = self.get_submodule("stem.0")
        assert isinstance(first, nn.Conv2d)
        whiten(first, x)
