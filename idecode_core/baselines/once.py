"""Scorers without random transforms: the question is asked once, of x itself, so n is 1.

A larger n repeats the answer: n equal scores have the same rank as one, and a merged detector may have members that
draw and members that do not. A subclass says how strange x is: one file per method.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from idecode_core.image.features import Preprocessing
from idecode_core.image.pictures import TakesPictures
from idecode_core.models.pieces import in_pieces
from idecode_core.scorer import (
    Inspected,
    Progress,
    Samples,
    Scored,
    Settings,
    Term,
    Variant,
    Vectors,
    check_n,
    chunks,
    in_one_pass,
    prepared,
)

PIXELS_PER_BATCH = 2**18  # 256 pictures of 32 x 32: memory is bounded by the batch at the model's size
AS_IT_IS = "as it is"


@dataclass(frozen=True, eq=False, kw_only=True)
class OnceScorer(TakesPictures, ABC):
    """What rivals share: pictures come in, one number per picture comes out, larger = stranger."""

    kind: ClassVar[str]
    most_draws: ClassVar[int] = 1
    """What `Detector.calibrate` stores per point: more would be the same number again."""
    term: ClassVar[str]
    """The score in words a newcomer understands."""

    preprocessing: Preprocessing
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    classes: tuple[str, ...] = ()

    @abstractmethod
    def strangeness(self, x: Tensor) -> Tensor:
        """Pictures in [0, 1] (batch, 3, size, size) on the device -> scores (batch,).

        It is called without gradients; a method that needs them asks for them with `torch.enable_grad()`.
        """

    @abstractmethod
    def own_settings(self) -> Settings:
        """Arguments of the constructor that are ready for JSON; those of this class come by themselves."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Weights and whatever `fit` found."""

    @classmethod
    @abstractmethod
    def rebuild(cls, own: Mapping[str, Any], tensors: Mapping[str, Tensor], **parts: Any) -> Self:
        """The inverse of `own_settings` and `tensors`; `parts` are the fields of this class."""

    def says(self, x: Tensor) -> str:
        """What the method says of one picture (1, 3, size, size), in words."""
        return ""

    @property
    def points_per_batch(self) -> int:
        return max(1, PIXELS_PER_BATCH // self.preprocessing.size**2)

    def score(
        self, samples: Samples, *, n: int = 1, seed: int = 0, progress: Progress | None = None
    ) -> Scored:
        check_n(n)

        def batches() -> Iterator[tuple[dict[str, Vectors], Tensor]]:
            for chunk in chunks(prepared(self, samples, seed), self.points_per_batch):
                with torch.no_grad():
                    found = in_pieces(self.strangeness, self.tensor(chunk), self.points_per_batch)
                    once = found.detach().cpu().double().numpy()  # (batch,)
                yield {"": np.repeat(once[:, None], n, axis=1)}, torch.zeros(len(chunk), n, 0)

        return in_one_pass(batches(), progress, "image")[""]

    def inspect(self, sample: Any, *, n: int = 1, seed: int = 0) -> Inspected:
        check_n(n)
        (point,) = prepared(self, sample, seed)
        x = self.tensor([point])
        with torch.no_grad():
            score, said = float(self.strangeness(x)), self.says(x)
        shown = (x[0].clamp(0, 1) * 255).round().byte().permute(1, 2, 0).cpu().numpy()
        variants = tuple(Variant(shown, AS_IT_IS, said, score, i) for i in range(n))
        return Inspected(np.full(n, score), variants, ((Term(self.term, score),),) * n)

    def describe(self, parameters: Tensor) -> list[str]:
        return [AS_IT_IS] * len(parameters)

    def settings(self) -> Settings:
        return {
            "kind": self.kind,
            "base_ncm": self.kind,
            "preprocessing": asdict(self.preprocessing),
            "classes": list(self.classes),
            "own": self.own_settings(),
        }

    @classmethod
    def build(cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> Self:
        return cls.rebuild(
            settings["own"],
            tensors,
            preprocessing=Preprocessing(**settings["preprocessing"]),
            classes=tuple(settings["classes"]),
            device=device,
        )
