"""Backbones: images (batch, 3, h, w) -> features (batch, out_features).

ResNet-34, ResNet-18 and WRN-40-2 are the paper's (3x3 stem, made for 32 px), with AVT's encoder block where
the paper puts it. Compact is ours, for CPUs: few wide convolutions keep two cores busier than many thin ones.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, relu

VARIATIONAL_NOISE = 0.001


class EncoderBlock(nn.Module):
    """AVT's variational bottleneck: mu is the input itself, a 1x1 convolution gives the log-variance.

    In training z = mu + 0.001 * exp(logvar / 2) * noise; for scoring z = mu.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.log_variance = nn.Sequential(
            nn.Conv2d(channels, channels, 1, bias=False), nn.BatchNorm2d(channels)
        )

    def forward(self, mu: Tensor) -> Tensor:
        if not self.training:
            return mu
        noise = torch.randn_like(mu)
        return mu + VARIATIONAL_NOISE * torch.exp(self.log_variance(mu) / 2) * noise


def convolution(c_in: int, c_out: int, stride: int = 1, kernel: int = 3) -> nn.Conv2d:
    return nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, bias=False)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with a shortcut (He et al. 2016)."""

    def __init__(self, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = convolution(c_in, c_out, stride), nn.BatchNorm2d(c_out)
        self.conv2, self.norm2 = convolution(c_out, c_out), nn.BatchNorm2d(c_out)
        same = stride == 1 and c_in == c_out
        self.shortcut: nn.Module = (
            nn.Identity()
            if same
            else nn.Sequential(convolution(c_in, c_out, stride, 1), nn.BatchNorm2d(c_out))
        )

    def forward(self, x: Tensor) -> Tensor:
        y = relu(self.norm1(self.conv1(x)))
        return relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """ResNet for small images; the encoder block stands before the last stage."""

    def __init__(self, blocks: tuple[int, ...], widths: tuple[int, ...] = (64, 128, 256, 512)) -> None:
        super().__init__()
        layers: list[nn.Module] = [convolution(3, widths[0]), nn.BatchNorm2d(widths[0]), nn.ReLU()]
        c_in = widths[0]
        for stage, (count, c_out) in enumerate(zip(blocks, widths, strict=True)):
            if stage == len(widths) - 1:
                layers.append(EncoderBlock(c_in))
            for i in range(count):
                layers.append(BasicBlock(c_in, c_out, stride=2 if stage > 0 and i == 0 else 1))
                c_in = c_out
        self.layers = nn.Sequential(*layers)
        self.out_features = c_in

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.layers(x).mean(dim=(2, 3))
        return features


class WideBlock(nn.Module):
    """Pre-activation block of a wide residual network (Zagoruyko and Komodakis 2016)."""

    def __init__(self, c_in: int, c_out: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(c_in), convolution(c_in, c_out, stride)
        self.norm2, self.conv2 = nn.BatchNorm2d(c_out), convolution(c_out, c_out)
        self.dropout = nn.Dropout(dropout)
        same = stride == 1 and c_in == c_out
        self.shortcut: nn.Module = nn.Identity() if same else convolution(c_in, c_out, stride, 1)

    def forward(self, x: Tensor) -> Tensor:
        active = relu(self.norm1(x))
        y = self.conv2(self.dropout(relu(self.norm2(self.conv1(active)))))
        shortcut: Tensor = x if isinstance(self.shortcut, nn.Identity) else self.shortcut(active)
        out: Tensor = shortcut + y
        return out


class WideResNet(nn.Module):
    """WRN-depth-width; the encoder block stands after the last block."""

    def __init__(self, depth: int = 40, width: int = 2, dropout: float = 0.3) -> None:
        super().__init__()
        count = (depth - 4) // 6
        layers: list[nn.Module] = [convolution(3, 16)]
        c_in = 16
        for stage, c_out in enumerate((16 * width, 32 * width, 64 * width)):
            for i in range(count):
                layers.append(WideBlock(c_in, c_out, 2 if stage > 0 and i == 0 else 1, dropout))
                c_in = c_out
        layers += [nn.BatchNorm2d(c_in), nn.ReLU(), EncoderBlock(c_in)]
        self.layers = nn.Sequential(*layers)
        self.out_features = c_in

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.layers(x).mean(dim=(2, 3))
        return features


class ConvGroup(nn.Module):
    """Convolution, pooling to half the side, then a second convolution."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = convolution(c_in, c_out), nn.BatchNorm2d(c_out)
        self.conv2, self.norm2 = convolution(c_out, c_out), nn.BatchNorm2d(c_out)

    def forward(self, x: Tensor) -> Tensor:
        x = relu(self.norm1(max_pool2d(self.conv1(x), 2)))
        return relu(self.norm2(self.conv2(x)))


class Compact(nn.Module):
    """A whitening 2x2 stem and three groups of two wide convolutions, after the CIFAR-10 speed-run networks
    (Jordan 2024, "94% on CIFAR-10 in 3.29 seconds")."""

    def __init__(self, widths: tuple[int, ...] = (64, 256, 256)) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 2)
        channels = (24, *widths)
        self.groups = nn.Sequential(*(ConvGroup(a, b) for a, b in pairwise(channels)))
        self.out_features = widths[-1]

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.groups(relu(self.stem(x))).amax(dim=(2, 3))
        return features

    def whiten(self, x: Tensor, floor: float = 5e-4) -> None:
        whiten(self.stem, x, floor)


@torch.no_grad()
def whiten(stem: nn.Conv2d, x: Tensor, floor: float = 5e-4) -> None:
    """Set a 2x2 stem of 24 filters to the eigenvectors of the 2x2 patches of x (both signs), scaled to unit variance.

    x: normalised images (batch, 3, h, w). The stem starts where training would bring it.
    """
    patches = x.unfold(2, 2, 1).unfold(3, 2, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, 12)  # (patches, 12)
    covariance = (patches.T @ patches) / len(patches)
    values, vectors = torch.linalg.eigh(covariance.cpu().double())  # mps has no float64
    filters = (vectors / (values + floor).sqrt()).T.reshape(12, 3, 2, 2).to(x.dtype)
    stem.weight.copy_(torch.cat([filters, -filters]))
    assert stem.bias is not None
    stem.bias.zero_()
