"""M for sounds: a VGG that names the class of a log-mel block (facts of the paper's public code)."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

PAPER_WIDTHS = (64, 128, 256, 512)


@dataclass(frozen=True)
class VGGConfig:
    """Everything needed to rebuild M; saved with its weights."""

    outputs: int
    widths: tuple[int, ...] = PAPER_WIDTHS
    """Channels of each group of two convolutions."""
    stride: int = 1
    """Step of the first convolution; 2 makes the compact network for CPUs, at a quarter of the work."""

    def settings(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


class VGG(nn.Module):
    """Groups of two (3x3 convolution, batch norm, ReLU) and a 2x2 max pool, global average pool, linear."""

    def __init__(self, config: VGGConfig) -> None:
        super().__init__()
        self.config = config
        layers: list[nn.Module] = []
        c_in = 1
        for width in config.widths:
            for _ in range(2):
                stride = 1 if layers else config.stride
                layers += [nn.Conv2d(c_in, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
                c_in = width
            layers.append(nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(c_in, config.outputs)

    def forward(self, blocks: Tensor) -> Tensor:
        """Standardised blocks (batch, bands, frames) -> logits (batch, outputs)."""
        features = self.layers(blocks[:, None].contiguous(memory_format=torch.channels_last))
        logits: Tensor = self.head(features.mean(dim=(2, 3)))
        return logits


def blank_vgg(config: VGGConfig) -> VGG:
    """M before its weights are loaded. Torch's global generator, which initial weights come from, is left as it was."""
    with torch.random.fork_rng(devices=()):
        return VGG(config)
