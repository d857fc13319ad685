"""Backbones: images (batch, 3, h, w) -> features (batch, out_features).

ResNet-34, ResNet-18, DenseNet-100 and WRN-40-2 are the paper's (3x3 stem, made for 32 px), with AVT's encoder block
where the paper puts it. Compact is ours, for CPUs: few wide convolutions keep two cores busier than many thin ones. So is
CompactDenseNet: every layer sees the outputs of all layers before it (Huang et al. 2017, arXiv 1608.06993); it halves the side at
once and has few layers, without the bottlenecks that all of torchvision's have and whose many small steps keep CPUs waiting. A
shipped detector names its tensors after the modules here, so they keep their names.
"""

from collections.abc import Iterable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, max_pool2d, relu

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


class Pooled(nn.Module):
    """Layers one after the other, then the mean over space."""

    def __init__(self, layers: Iterable[nn.Module], out_features: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)
        self.out_features = out_features

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.layers(x).mean(dim=(2, 3))
        return features


def resnet(blocks: tuple[int, int, int, int]) -> Pooled:
    """torchvision's ResNet of basic blocks (He et al. 2016), made for small images by a 3x3 stem and no pooling after it;
    the encoder block stands before the last stage."""
    from torchvision.models.resnet import BasicBlock, ResNet  # as slow to import as torch itself

    network = ResNet(BasicBlock, list(blocks))
    early = (convolution(3, 64), network.bn1, network.relu, network.layer1, network.layer2, network.layer3)
    return Pooled((*early, EncoderBlock(256), network.layer4), 512)


def densenet100() -> Pooled:
    """torchvision's DenseNet-BC (Huang et al. 2017) with growth 12 and a 3x3 stem: three blocks of 16 bottlenecks are 100
    layers."""
    from torchvision.models.densenet import DenseNet

    network = DenseNet(growth_rate=12, block_config=(16, 16, 16), num_init_features=24)
    after_stem = network.features[4:]  # its own stem: convolution, norm, ReLU, pooling
    return Pooled((convolution(3, 24), *after_stem, nn.ReLU()), network.classifier.in_features)


DROPOUT = 0.3


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


def wide_resnet() -> Pooled:
    """WRN-40-2, which torchvision has for ImageNet only: three stages of six blocks; the encoder block stands after the last."""
    layers: list[nn.Module] = [convolution(3, 16)]
    c_in = 16
    for stage, c_out in enumerate((32, 64, 128)):
        for i in range(6):
            layers.append(WideBlock(c_in, c_out, 2 if stage > 0 and i == 0 else 1, DROPOUT))
            c_in = c_out
    return Pooled((*layers, nn.BatchNorm2d(c_in), nn.ReLU(), EncoderBlock(c_in)), c_in)


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

    def start_as_identity(self) -> None:
        """Each convolution passes its first inputs on and starts at random beside that; the whitened stem and the scales
        of norms are no longer learned."""
        for layer in self.groups.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.dirac_(layer.weight[: layer.in_channels])
            elif isinstance(layer, nn.BatchNorm2d):
                layer.weight.requires_grad_(False)
        self.stem.weight.requires_grad_(False)


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
