"""M: the model that learns how in-distribution data behaves under G.

`encode` gives the features of any image; `decode` answers from the features of x and of g(x): which g was
applied (AVT: pair of features; or g(x) alone), or which class it shows (a classifier, for Eq. 3).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from idecode_core.errors import SettingError
from idecode_core.models.backbones import Compact, CompactDenseNet, Pooled, densenet100, resnet, wide_resnet
from idecode_core.models.pretrained import EfficientNetLite0

LOG_VARIANCE_SCALE = 1000.0  # AVT divides the log-variance head by this
MOST_ENLARGED = 8


@dataclass(frozen=True)
class ModelConfig:
    """Everything needed to rebuild M; saved with its weights."""

    backbone: Literal[
        "resnet34", "resnet18", "wrn-40-2", "compact", "densenet100", "densenet-compact", "efficientnet-lite0"
    ]
    outputs: int
    pair: bool = False
    """Decode from the features of (x, g(x)), as AVT does, or of g(x) alone."""
    hidden: int = 0
    """Width of a hidden layer in the head; 0 for a linear head."""
    variance: bool = False
    """A second head for the log-variance of predicted parameters (Gaussian NLL)."""
    widths: tuple[int, ...] = (64, 256, 256)
    """Channels of the compact backbone's groups."""
    mean: tuple[float, ...] = (0.4914, 0.4822, 0.4465)
    std: tuple[float, ...] = (0.247, 0.2435, 0.2616)
    enlarge: int = 1
    """How many times larger, in each direction, the backbone sees pictures. They are brought to the model's size and transformed
    before that, so a sharp picture and a blurred one have gone the same way."""

    def __post_init__(self) -> None:
        if type(self.enlarge) is not int or not 1 <= self.enlarge <= MOST_ENLARGED:
            raise SettingError(
                f"The network enlarges pictures a whole number of times from 1 to {MOST_ENLARGED}, got {self.enlarge!r:.40}: correct the "
                "config."
            )

    def settings(self) -> dict[str, Any]:
        """Ready for JSON. What is younger than the first detectors stands there where it is used, so that theirs keep their hash."""
        fields = asdict(self)
        if self.enlarge == 1:
            del fields["enlarge"]
        return fields

    @staticmethod
    def read(settings: Mapping[str, Any]) -> "ModelConfig":
        """From what a folder's config.json says of the model; JSON has lists where there are tuples here."""
        arguments: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()
        }
        return ModelConfig(**arguments)


def build_backbone(config: ModelConfig) -> Pooled | Compact | CompactDenseNet | EfficientNetLite0:
    if config.backbone == "resnet34":
        return resnet((3, 4, 6, 3))
    if config.backbone == "resnet18":
        return resnet((2, 2, 2, 2))
    if config.backbone == "wrn-40-2":
        return wide_resnet()
    if config.backbone == "compact":
        return Compact(config.widths)
    if config.backbone == "densenet100":
        return densenet100()
    if config.backbone == "densenet-compact":
        return CompactDenseNet()
    if config.backbone == "efficientnet-lite0":
        return EfficientNetLite0()
    raise SettingError(
        f"Unknown backbone {config.backbone!r}: expected resnet34, resnet18, wrn-40-2, compact, densenet100, "
        "densenet-compact or efficientnet-lite0; correct the config."
    )


class Encoder(nn.Module):
    """A backbone with its normalisation: images come in as floats in [0, 1]."""

    mean: Tensor
    std: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.backbone = build_backbone(config)
        self.register_buffer("mean", torch.tensor(config.mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(config.std).view(1, -1, 1, 1))

    def normalise(self, x: Tensor) -> Tensor:
        normalised: Tensor = (x - self.mean) / self.std
        return normalised.contiguous(memory_format=torch.channels_last)

    def encode(self, x: Tensor) -> Tensor:
        """x (batch, 3, h, w) in [0, 1] -> features (batch, d)."""
        if self.config.enlarge != 1:
            x = interpolate(x, scale_factor=self.config.enlarge, mode="bicubic")
        features: Tensor = self.backbone(self.normalise(x))
        return features


class Equivariant(Encoder):
    """M: encoder, optional pairing, head."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        features = self.backbone.out_features * (2 if config.pair else 1)
        self.head = self._head(features, config.outputs)
        if config.variance:
            self.variance_head = self._head(features, config.outputs)

    def _head(self, features: int, outputs: int) -> nn.Module:
        if self.config.hidden:
            return nn.Sequential(
                nn.Linear(features, self.config.hidden), nn.ReLU(), nn.Linear(self.config.hidden, outputs)
            )
        return nn.Linear(features, outputs)

    def decode(self, z: Tensor | None, z_g: Tensor) -> Tensor:
        """Features of x (batch, d) and of its variants (batch, m, d) -> predictions (batch, m, outputs)."""
        prediction: Tensor = self.head(self._joint(z, z_g))
        return prediction

    def decode_log_variance(self, z: Tensor | None, z_g: Tensor) -> Tensor:
        """The predicted log-variance of each parameter (batch, m, outputs), for training."""
        log_variance: Tensor = self.variance_head(self._joint(z, z_g)) / LOG_VARIANCE_SCALE
        return log_variance

    def _joint(self, z: Tensor | None, z_g: Tensor) -> Tensor:
        if not self.config.pair:
            return z_g
        if z is None:
            raise SettingError(
                "This model compares x with g(x): expected features of x, got none; encode x first."
            )
        return torch.cat([z[:, None].expand(-1, z_g.shape[1], -1), z_g], dim=-1)  # (batch, m, 2d)


def blank_model(config: ModelConfig) -> Equivariant:
    """M before its weights are loaded. Torch's global generator, which initial weights come from, is left as it was."""
    with torch.random.fork_rng(devices=()):
        return Equivariant(config)
