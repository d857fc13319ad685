"""What all rivals share: pictures come in, numbers come out, and what `fit` found is stored by the names of its fields."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from idecode_core.device import CPU
from idecode_core.draws import Prepared
from idecode_core.image.features import Preprocessing
from idecode_core.image.pictures import TakesPictures
from idecode_core.scorer import (
    Inspected,
    Progress,
    Samples,
    Scored,
    Settings,
    Variant,
    Vectors,
    check_n,
    chunks,
    in_one_pass,
    prepared,
    terms_by_draw,
)

MODEL = "model."
"""Of the network's weights among a scorer's tensors."""


def network_tensors(model: nn.Module) -> dict[str, Tensor]:
    return {MODEL + name: value for name, value in model.state_dict().items()}


def network_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `network_tensors`, among other tensors."""
    return {name.removeprefix(MODEL): value for name, value in tensors.items() if name.startswith(MODEL)}


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedScorer(TakesPictures, ABC):
    """Fields that a subclass adds are settings (`chosen`), its network and transforms, or what `fit` found: tensors or tuples
    of them, which go to the device by themselves."""

    kind: ClassVar[str]
    term: ClassVar[str]
    """The one summand of a draw's score, in words a newcomer understands."""
    chosen: ClassVar[tuple[str, ...]] = ()
    """Fields that are settings."""

    preprocessing: Preprocessing
    device: torch.device = CPU
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.fitted():
            value = getattr(self, name)
            many = isinstance(value, tuple)
            placed = tuple(one.to(self.device) for one in value) if many else value.to(self.device)
            object.__setattr__(self, name, placed)

    @classmethod
    def fitted(cls) -> list[str]:
        """The fields that `fit` finds."""
        others = {"model", "transforms", *cls.chosen, *(one.name for one in fields(FittedScorer))}
        return [one.name for one in fields(cls) if one.name not in others]

    @abstractmethod
    def points_per_batch(self, n: int) -> int:
        """Pictures that are scored at once, under n draws."""

    @abstractmethod
    def scored(self, points: Sequence[Prepared], n: int) -> tuple[Vectors, Tensor]:
        """V (batch, n), and the parameters drawn for each point (batch, ...)."""

    @abstractmethod
    def looked_at(self, point: Prepared, n: int) -> tuple[Vectors, tuple[Variant, ...]]:
        """V (n,) of one picture, and its variants."""

    @abstractmethod
    def describe(self, parameters: Tensor) -> list[str]: ...

    def score(
        self, samples: Samples, *, n: int = 1, seed: int = 0, progress: Progress | None = None
    ) -> Scored:
        check_n(n)

        def batches() -> Iterator[tuple[dict[str, Vectors], Tensor]]:
            for chunk in chunks(prepared(self, samples, seed), self.points_per_batch(n)):
                vectors, drawn = self.scored(chunk, n)
                yield {"": vectors}, drawn

        return in_one_pass(batches(), progress, "image")[""]

    def inspect(self, sample: Any, *, n: int = 1, seed: int = 0) -> Inspected:
        check_n(n)
        (point,) = prepared(self, sample, seed)
        vector, variants = self.looked_at(point, n)
        return Inspected(vector, variants, terms_by_draw({self.term: vector}))

    def settings(self) -> Settings:
        return {
            "kind": self.kind,
            "base_ncm": self.kind,
            "preprocessing": asdict(self.preprocessing),
            "classes": list(self.classes),
        }

    def tensors(self) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for name in self.fitted():
            value = getattr(self, name)
            many = isinstance(value, tuple)
            found |= {f"{name}.{i}": one for i, one in enumerate(value)} if many else {name: value}
        return found

    @classmethod
    @abstractmethod
    def rest(cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        """Arguments of the constructor beside those of this class and what `fit` found."""

    @classmethod
    def build(cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> Self:
        found: dict[str, Any] = {}
        for name in cls.fitted():
            many = sorted(
                (key for key in tensors if key.startswith(f"{name}.")), key=lambda key: int(key.split(".")[1])
            )
            found[name] = tuple(tensors[key] for key in many) if many else tensors[name]
        return cls(
            preprocessing=Preprocessing(**settings["preprocessing"]),
            classes=tuple(settings["classes"]),
            device=device,
            **found,
            **cls.rest(settings, tensors),
        )
