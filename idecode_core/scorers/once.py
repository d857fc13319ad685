"""Scorers without random transforms: the question is asked once, of x itself, so n is 1.

A larger n repeats the answer: n equal scores have the same rank as one, and a merged detector may have members that
draw and members that do not.

A method is one small class. Its fields are a network (`model`), what `fit` found (tensors) and settings (numbers), which
are stored under their names; its formula is `strangeness`, or `of_features` where features and logits of a ready network
are enough.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from idecode_core.device import CPU
from idecode_core.errors import SettingError
from idecode_core.image.features import Preprocessing, eight_bits
from idecode_core.image.scorer import TakesPictures
from idecode_core.models.equivariant import Equivariant, ModelConfig, blank_model
from idecode_core.models.pieces import in_pieces, with_weights
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
PIXELS_PER_BATCH = 2**18  # 256 pictures of 32 x 32: memory is bounded by the batch at the model's size
AS_IT_IS = "as it is"
Network = TypeVar("Network", bound=nn.Module)


def fields_of(scorer: Any, *types: Any) -> list[str]:
    """The fields of a dataclass that have one of these types."""
    return [field.name for field in fields(scorer) if field.type in types]


def tensor_fields(scorer: Any) -> list[str]:
    """What `fit` finds: tensors, or tuples of them."""
    return fields_of(scorer, Tensor, tuple[Tensor, ...])


def to_device(scorer: Any) -> None:
    """Bring a scorer's network and tensors to its device."""
    if hasattr(scorer, "model"):
        scorer.model.to(scorer.device).to(memory_format=torch.channels_last).eval()
    for name in tensor_fields(scorer):
        value = getattr(scorer, name)
        moved = (
            value.to(scorer.device)
            if isinstance(value, Tensor)
            else tuple(t.to(scorer.device) for t in value)
        )
        object.__setattr__(scorer, name, moved)


def stored_tensors(scorer: Any) -> dict[str, Tensor]:
    """Weights as model.NAME, tensors by their fields' names, tuples as NAME.0, NAME.1, ..."""
    weights = scorer.model.state_dict() if hasattr(scorer, "model") else {}
    stored = {MODEL + name: value for name, value in weights.items()}
    for name in tensor_fields(scorer):
        value = getattr(scorer, name)
        stored |= (
            {name: value} if isinstance(value, Tensor) else {f"{name}.{i}": t for i, t in enumerate(value)}
        )
    return stored


def read_tensors(scorer: type, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The inverse of `stored_tensors`, without the network."""
    read: dict[str, Any] = {}
    for name in tensor_fields(scorer):
        many = [key for key in tensors if key.startswith(f"{name}.")]
        in_order = sorted(many, key=lambda key: int(key.split(".")[1]))
        read[name] = tuple(tensors[key] for key in in_order) if many else tensors[name]
    return read


def read_network(
    blank: Callable[[ModelConfig], Network], settings: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> Network:
    """The network of `stored_tensors`."""
    config = ModelConfig.read(settings)
    weights = {name.removeprefix(MODEL): value for name, value in tensors.items() if name.startswith(MODEL)}
    return with_weights(lambda: blank(config), weights)


@dataclass(frozen=True, eq=False, kw_only=True)
class OnceScorer(TakesPictures, ABC):
    """One number per picture, larger = stranger."""

    kind: ClassVar[str]
    title: ClassVar[str] = ""
    term: ClassVar[str]
    """The one summand of the score, in words a newcomer understands."""
    summary: ClassVar[str] = ""
    """What the number is, in one line."""
    most_draws: ClassVar[int] = 1
    """What `Detector.calibrate` stores per point: more would be the same number again."""

    preprocessing: Preprocessing
    device: torch.device = CPU
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if hasattr(self, "model") and self.model.config.pair:
            raise SettingError(
                "Expected a network that looks at one picture, got one that compares x with g(x) and names no classes; choose "
                "another, such as that of cifar10-invariance."
            )
        to_device(self)

    @abstractmethod
    def strangeness(self, x: Tensor) -> Tensor:
        """Pictures in [0, 1] (batch, 3, size, size) on the device -> scores (batch,).

        It is called without gradients; a method that needs them asks for them with `torch.enable_grad()`.
        """

    def answer(self, x: Tensor) -> str:
        """What the method says of one picture (1, 3, size, size), in words."""
        return ""

    @property
    def points_per_batch(self) -> int:
        enlarged = self.model.config.enlarge if hasattr(self, "model") else 1
        return max(1, PIXELS_PER_BATCH // (self.preprocessing.size**2 * enlarged**3))

    def score(
        self, samples: Samples, *, n: int = 1, seed: int = 0, progress: Progress | None = None
    ) -> Scored:
        check_n(n)

        def batches() -> Iterator[tuple[dict[str, Vectors], Tensor]]:
            for points in chunks(prepared(self, samples, seed), self.points_per_batch):
                with torch.no_grad():
                    once = in_pieces(self.strangeness, self.tensor(points), self.points_per_batch)  # (batch,)
                vectors = np.repeat(once.detach().cpu().double().numpy()[:, None], n, axis=1)
                yield {"": vectors}, torch.zeros(len(points), n, 0)

        return in_one_pass(batches(), progress, "image")[""]

    def inspect(self, sample: Any, *, n: int = 1, seed: int = 0) -> Inspected:
        check_n(n)
        x = self.tensor(list(prepared(self, sample, seed)))
        with torch.no_grad():
            score, answer = float(self.strangeness(x)), self.answer(x)
        vector = np.full(n, score)
        variants = tuple(Variant(eight_bits(x)[0], AS_IT_IS, answer, score, i) for i in range(n))
        return Inspected(vector, variants, terms_by_draw({self.term: vector}))

    def describe(self, parameters: Tensor) -> list[str]:
        return [AS_IT_IS] * len(parameters)

    def settings(self) -> Settings:
        network = {"model": self.model.config.settings()} if hasattr(self, "model") else {}
        numbers = {name: getattr(self, name) for name in fields_of(self, int, float)}
        return {
            "kind": self.kind,
            "base_ncm": self.kind,
            "preprocessing": asdict(self.preprocessing),
            "classes": list(self.classes),
            "own": {**network, **numbers},
        }

    def tensors(self) -> dict[str, Tensor]:
        return stored_tensors(self)

    @classmethod
    def build(cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> Self:
        stored = settings["own"]
        parts = {name: stored[name] for name in fields_of(cls, int, float)} | read_tensors(cls, tensors)
        if "model" in stored:
            parts["model"] = read_network(blank_model, stored["model"], tensors)
        preprocessing = Preprocessing(**settings["preprocessing"])
        return cls(preprocessing=preprocessing, classes=tuple(settings["classes"]), device=device, **parts)


@dataclass(frozen=True, eq=False, kw_only=True)
class OnNetwork(OnceScorer):
    """How strange the features and logits are that a ready network gives to x."""

    fewest: ClassVar[int] = 2
    """Training points that `fit` needs."""

    model: Equivariant

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
        points = chunks(prepared(self, samples, seed=0), self.points_per_batch)
        with torch.no_grad():
            return torch.cat([self.model.encode(self.tensor(chunk)).cpu() for chunk in points])

    def answer(self, x: Tensor) -> str:
        shares = self.logits(self.model.encode(x))[0].softmax(dim=0)
        if len(self.classes) != len(shares):
            return ""
        return f"{self.classes[int(shares.argmax())]}, {float(shares.max()):.0%}"


def logits(model: Equivariant, z: Tensor) -> Tensor:
    """The head on features of x (N, d) -> (N, outputs)."""
    return model.decode(None, z[:, None])[:, 0]


def check_features(z: Tensor, y: Tensor, fewest: int) -> None:
    """SettingError unless there are enough features, with one class each, that are numbers and differ."""
    if z.ndim != 2 or len(z) < fewest or y.shape != z.shape[:1]:
        raise SettingError(
            f"Expected features (N, d) of at least {fewest} training points and one class each, got {tuple(z.shape)} and "
            f"{tuple(y.shape)}; add training points."
        )
    if not z.isfinite().all():
        raise SettingError(
            f"{int((~z.isfinite()).any(dim=1).sum())} of {len(z)} training points have features that are not finite numbers: "
            "expected none; check the network's weights and the pictures."
        )
    if torch.equal(z, z[:1].expand_as(z)):
        raise SettingError(
            f"All {len(z)} training points have the same features, so there is no distance to measure: expected different "
            "pictures, and a network that tells them apart."
        )
