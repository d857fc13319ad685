"""What rivals on a ready network share: its features z of x and its logits, taken once per picture, without transforms.

A subclass says what is strange about them: one file per method. Two verbs: `fit` on features of the proper training set,
`score` on pictures.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from idecode_core.baselines.features import MODEL, check_features
from idecode_core.baselines.once import OnceScorer
from idecode_core.errors import SettingError
from idecode_core.models.equivariant import Equivariant, ModelConfig, blank_model
from idecode_core.models.restore import with_weights
from idecode_core.scorer import Samples, Settings, chunks, prepared


@dataclass(frozen=True, eq=False, kw_only=True)
class OnNetwork(OnceScorer, ABC):
    """A network that stays as it is, and how strange its features and logits are."""

    chosen: ClassVar[tuple[str, ...]] = ()
    """Fields that are settings."""
    learns: ClassVar[tuple[str, ...]] = ()
    """Fields that `fit` finds: tensors."""
    fewest: ClassVar[int] = 2
    """Training points that `fit` needs."""

    model: Equivariant

    def __post_init__(self) -> None:
        if self.model.config.pair:
            raise SettingError(
                "Expected a network that looks at one picture, got one that compares x with g(x); choose another."
            )
        self.model.to(self.device).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]

    @classmethod
    def fit(cls, z: Tensor, y: Tensor, *, model: Equivariant, **parts: Any) -> Self:
        """From features of the proper training set (N, d) and their classes (N,); `parts` are this class's other fields."""
        check_features(z, y, cls.fewest)
        device = parts.get("device", torch.device("cpu"))
        parts |= {name: value.to(device) for name, value in cls.learned(z, y, model).items()}
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
                [self.model.encode(self.tensor(c)).cpu() for c in chunks(points, self.points_per_batch)]
            )

    def says(self, x: Tensor) -> str:
        found = self.logits(self.model.encode(x))[0].softmax(dim=0)
        if len(self.classes) != len(found):
            return ""
        return f"{self.classes[int(found.argmax())]}, {float(found.max()):.0%}"

    def own_settings(self) -> Settings:
        return {"model": asdict(self.model.config), **{name: getattr(self, name) for name in self.chosen}}

    def tensors(self) -> dict[str, Tensor]:
        weights = {MODEL + name: value for name, value in self.model.state_dict().items()}
        return {**weights, **{name: getattr(self, name) for name in self.learns}}

    @classmethod
    def rebuild(cls, own: Mapping[str, Any], tensors: Mapping[str, Tensor], **parts: Any) -> Self:
        weights = {name.removeprefix(MODEL): t for name, t in tensors.items() if name.startswith(MODEL)}
        config = ModelConfig.read(own["model"])
        parts |= {name: tensors[name].to(parts["device"]) for name in cls.learns}
        parts |= {name: own[name] for name in cls.chosen}
        return cls(model=with_weights(lambda: blank_model(config), weights), **parts)


def logits(model: Equivariant, z: Tensor) -> Tensor:
    """The head on features of x (N, d) -> (N, outputs)."""
    return model.decode(None, z[:, None])[:, 0]
