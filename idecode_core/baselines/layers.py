"""What the detectors of adversarial inputs share (App. C.3): they look into the layers of the classifier that is attacked.

A layer is a map averaged over space, as Lee et al. (2018) take it; the last layer is what the classifier's head reads. The
classifier itself is not changed.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import relu

from idecode_core.baselines.features import check_features
from idecode_core.baselines.on_network import NetworkOnce
from idecode_core.errors import SettingError
from idecode_core.models import Equivariant
from idecode_core.models.backbones import Compact, ResNet, WideResNet
from idecode_core.models.densenet import DenseNet

POINTS_PER_BATCH = 256


@dataclass(frozen=True, eq=False)
class Observed:
    """What a classifier makes of a batch of pictures on its way to the answer."""

    layers: tuple[Tensor, ...]
    """Per layer (batch, channels), in order; the last one are the features that the head reads."""
    logits: Tensor  # (batch, classes)

    @property
    def features(self) -> Tensor:
        return self.layers[-1]


def observe(model: Equivariant, x: Tensor) -> Observed:
    """Pictures in [0, 1] (batch, 3, h, w) -> layers and logits, from one pass."""
    *early, last = maps(model, model.normalise(x))
    features = last.amax(dim=(2, 3)) if isinstance(model.backbone, Compact) else last.mean(dim=(2, 3))
    layers = (*(map_.mean(dim=(2, 3)) for map_ in early), features)
    return Observed(layers, model.decode(None, features[:, None])[:, 0])


def maps(model: Equivariant, x: Tensor) -> list[Tensor]:
    """What the stem and each group of the backbone make of x, maps (batch, channels, h, w); of a backbone that is one row of
    many layers, the last map of each size."""
    backbone = model.backbone
    if isinstance(backbone, Compact | DenseNet):
        found = [relu(backbone.stem(x)) if isinstance(backbone, Compact) else backbone.stem(x)]
        for group in backbone.groups:
            found.append(group(found[-1]))
        return found
    if isinstance(backbone, ResNet | WideResNet):
        by_size: dict[int, Tensor] = {}
        for layer in backbone.layers:
            x = layer(x)
            by_size[x.shape[2]] = x
        return list(by_size.values())
    raise SettingError(
        f"The layers of {model.config.backbone} are not known here: expected a compact network, a ResNet or a DenseNet. Choose "
        "another classifier."
    )


def observe_all(model: Equivariant, x: Tensor) -> Observed:
    """Many pictures, batch after batch, without gradients; on the CPU."""
    device = next(model.parameters()).device
    with torch.no_grad():
        parts = [observe(model, batch.to(device)) for batch in x.split(POINTS_PER_BATCH)]
    layers = zip(*(part.layers for part in parts), strict=True)
    return Observed(
        tuple(torch.cat(layer).cpu() for layer in layers), torch.cat([part.logits for part in parts]).cpu()
    )


def observe_training(model: Equivariant, x: Tensor, y: Tensor, fewest: int) -> Observed:
    """`observe_all` of training points with their classes; a SettingError unless there are enough, and they differ."""
    seen = observe_all(model, x)
    check_features(seen.features, y, fewest)
    return seen


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerScorer(NetworkOnce):
    """A classifier and what `fit` found about its layers."""

    refusal: ClassVar[str] = (
        "A network that compares x with g(x) names no classes: expected a classifier. Choose one of `label` task, such "
        "as cifar10-invariance."
    )

    def says(self, x: Tensor) -> str:
        best = int(observe(self.model, x).logits[0].argmax())
        return f"the classifier says {self.classes[best] if self.classes else f'class {best}'}"
