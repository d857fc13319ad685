"""What rivals on a ready network share: its features z of x and its logits, taken once per picture, without transforms.

A subclass says what is strange about them: one file per method. Two verbs: `fit` on features of the proper training set,
`score` on pictures.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from idecode_core.baselines.features import check_features
from idecode_core.baselines.fitted import network_tensors, network_weights
from idecode_core.baselines.once import OnceScorer
from idecode_core.errors import SettingError
from idecode_core.models.equivariant import Equivariant, ModelConfig, blank_model
from idecode_core.models.restore import with_weights
from idecode_core.scorer import Samples, Settings, chunks, prepared


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkOnce(OnceScorer):
    """A network that stays as it is, stored with what was found about it."""

    refusal: ClassVar[str] = (
        "Expected a network that looks at one picture, got one that compares x with g(x); choose another."
    )

    model: Equivariant

    def __post_init__(self) -> None:
        if self.model.config.pair:
            raise SettingError(self.refusal)
        self.model.to(self.device).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
        super().__post_init__()

    def own_settings(self) -> Settings:
        return {"model": asdict(self.model.config), **super().own_settings()}

    def tensors(self) -> dict[str, Tensor]:
        return {**network_tensors(self.model), **super().tensors()}

    @classmethod
    def rest(cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        config = ModelConfig.read(settings["own"]["model"])
        model = with_weights(lambda: blank_model(config), network_weights(tensors))
        return {"model": model, **super().rest(settings, tensors)}


@dataclass(frozen=True, eq=False, kw_only=True)
class OnNetwork(NetworkOnce):
    """How strange the network's features and logits are."""

    fewest: ClassVar[int] = 2
    """Training points that `fit` needs."""

    @classmethod
    def fit(cls, z: Tensor, y: Tensor, *, model: Equivariant, **parts: Any) -> Self:
        """From features of the proper training set (N, d) and their classes (N,); `parts` are this class's other fields."""
        check_features(z, y, cls.fewest)
        parts |= cls.learned(z, y, model)
        return cls(model=model, **parts)

    @classmethod
    def learned(cls, z: Tensor, y: Tensor, model: Equivariant) -> dict[str, Tensor]:
        """What `fit` finds, by the names of its fields; nothing where the network alone says enough."""
        return {}

    @abstractmethod
    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        """Features (batch, d) and logits (batch, outputs) -> scores (batch,)."""

    def strangeness(self, x: Tensor) -> Tensor:
        z = self.model.encode(x)
        return self.of_features(z, self.logits(z))

    def logits(self, z: Tensor) -> Tensor:
        """Features (batch, d) -> what the network says of them (batch, outputs)."""
        return logits(self.model, z)

    def encode(self, samples: Samples) -> Tensor:
        """Features of each sample, on the CPU: (N, d)."""
        points = prepared(self, samples, seed=0)
        with torch.no_grad():
            return torch.cat(
                [self.model.encode(self.tensor(c)).cpu() for c in chunks(points, self.points_per_batch())]
            )

    def says(self, x: Tensor) -> str:
        found = self.logits(self.model.encode(x))[0].softmax(dim=0)
        if len(self.classes) != len(found):
            return ""
        return f"{self.classes[int(found.argmax())]}, {float(found.max()):.0%}"


def logits(model: Equivariant, z: Tensor) -> Tensor:
    """The head on features of x (N, d) -> (N, outputs)."""
    return model.decode(None, z[:, None])[:, 0]
