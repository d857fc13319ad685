"""DenseNets: every layer sees the outputs of all layers before it (Huang et al. 2017, arXiv 1608.06993).

Images (batch, 3, h, w) -> features (batch, out_features). DenseNet-100 is the paper's victim; the compact one is ours, for
CPUs: it halves the side at once and has few layers, without bottlenecks.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, relu

from idecode_core.models.backbones import convolution, whiten


class DenseLayer(nn.Module):
    """x -> (x, new features). A bottleneck first brings x to 4 * growth channels by a 1x1 convolution (DenseNet-B)."""

    def __init__(self, c_in: int, growth: int, bottleneck: bool) -> None:
        super().__init__()
        self.squeeze: nn.Module = nn.Identity()
        channels = c_in
        if bottleneck:
            channels = 4 * growth
            self.squeeze = nn.Sequential(
                nn.BatchNorm2d(c_in), nn.ReLU(), convolution(c_in, channels, kernel=1)
            )
        self.norm, self.conv = nn.BatchNorm2d(channels), convolution(channels, growth)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.conv(relu(self.norm(self.squeeze(x))))], dim=1)


class Transition(nn.Module):
    """Half the side, fewer channels. Pooling first is the same as pooling last (both are linear) at a quarter of the work."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(c_in), convolution(c_in, c_out, kernel=1)

    def forward(self, x: Tensor) -> Tensor:
        halved: Tensor = self.conv(avg_pool2d(relu(self.norm(x)), 2))
        return halved


class DenseNet(nn.Module):
    """A stem and three dense blocks; a block is a module of `groups` and ends with the transition to the next."""

    def __init__(
        self, stem: nn.Module, channels: int, layers: tuple[int, int, int], growth: int, *, bottleneck: bool
    ) -> None:
        """`channels` are those that come out of the stem."""
        super().__init__()
        self.stem = stem
        blocks = []
        for block, count in enumerate(layers):
            inside: list[nn.Module] = []
            for _ in range(count):
                inside.append(DenseLayer(channels, growth, bottleneck))
                channels += growth
            if block < len(layers) - 1:
                inside.append(Transition(channels, channels // 2))
                channels //= 2
            else:
                inside += [nn.BatchNorm2d(channels), nn.ReLU()]
            blocks.append(nn.Sequential(*inside))
        self.groups = nn.Sequential(*blocks)
        self.out_features = channels

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.groups(self.stem(x)).mean(dim=(2, 3))
        return features


def densenet100() -> DenseNet:
    """DenseNet-BC with growth 12: three blocks of 16 bottlenecks are 100 layers."""
    return DenseNet(convolution(3, 24), 24, (16, 16, 16), growth=12, bottleneck=True)


class CompactDenseNet(DenseNet):
    """Compact's whitening stem, 16 x 16 positions after it; 2, 4 and 4 layers, without bottlenecks, whose many small steps
    keep CPUs waiting."""

    def __init__(self) -> None:
        stem = nn.Sequential(nn.Conv2d(3, 24, 2), nn.ReLU(), convolution(24, 64, stride=2))
        super().__init__(stem, 64, (2, 4, 4), growth=48, bottleneck=False)

    def whiten(self, x: Tensor) -> None:
        """Set the first layer by the 2x2 patches of normalised images x (batch, 3, h, w)."""
        first = self.get_submodule("stem.0")
        assert isinstance(first, nn.Conv2d)
        whiten(first, x)
