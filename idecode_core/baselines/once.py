"""Scorers without random transforms: the question is asked once, of x itself, so n is 1.

A larger n repeats the answer: n equal scores have the same rank as one, and a merged detector may have members that
draw and members that do not. A subclass says how strange x is: one file per method.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from idecode_core.baselines.fitted import FittedScorer
from idecode_core.draws import Prepared
from idecode_core.image.features import eight_bits
from idecode_core.models.pieces import in_pieces
from idecode_core.scorer import Settings, Variant, Vectors

PIXELS_PER_BATCH = 2**18  # 256 pictures of 32 x 32: memory is bounded by the batch at the model's size
AS_IT_IS = "as it is"


@dataclass(frozen=True, eq=False, kw_only=True)
class OnceScorer(FittedScorer):
    """One number per picture, larger = stranger."""

    most_draws: ClassVar[int] = 1
    """What `Detector.calibrate` stores per point: more would be the same number again."""

    @abstractmethod
    def strangeness(self, x: Tensor) -> Tensor:
        """Pictures in [0, 1] (batch, 3, size, size) on the device -> scores (batch,).

        It is called without gradients; a method that needs them asks for them with `torch.enable_grad()`.
        """

    def says(self, x: Tensor) -> str:
        """What the method says of one picture (1, 3, size, size), in words."""
        return ""

    def points_per_batch(self, n: int = 1) -> int:
        return max(1, PIXELS_PER_BATCH // self.preprocessing.size**2)

    def scored(self, points: Sequence[Prepared], n: int) -> tuple[Vectors, Tensor]:
        with torch.no_grad():
            found = in_pieces(self.strangeness, self.tensor(points), self.points_per_batch())
            once = found.detach().cpu().double().numpy()  # (batch,)
        return np.repeat(once[:, None], n, axis=1), torch.zeros(len(points), n, 0)

    def looked_at(self, point: Prepared, n: int) -> tuple[Vectors, tuple[Variant, ...]]:
        x = self.tensor([point])
        with torch.no_grad():
            score, said = float(self.strangeness(x)), self.says(x)
        variants = tuple(Variant(eight_bits(x)[0], AS_IT_IS, said, score, i) for i in range(n))
        return np.full(n, score), variants

    def describe(self, parameters: Tensor) -> list[str]:
        return [AS_IT_IS] * len(parameters)

    def own_settings(self) -> Settings:
        """Arguments of the constructor that are ready for JSON; those of `FittedScorer` come by themselves."""
        return {name: getattr(self, name) for name in self.chosen}

    def settings(self) -> Settings:
        return {**super().settings(), "own": self.own_settings()}

    @classmethod
    def rest(cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        return {name: settings["own"][name] for name in cls.chosen}
