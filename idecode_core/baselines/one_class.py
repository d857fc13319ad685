"""What one-class rivals with a network share: they learn it from pictures of one class, by asking about fixed views of them.

A subclass says which views, what is asked (`loss`) and how strange the answers are (`of_features`): one file per method.
Two verbs: `fit` on pictures of the class, `score` on any pictures.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.baselines.fitting import Budget, Draw, checked_pictures, fresh_network, learn
from idecode_core.baselines.on_network import OnNetwork
from idecode_core.baselines.views import seen_in
from idecode_core.image.features import Preprocessing
from idecode_core.models import Equivariant
from idecode_core.models.pieces import in_pieces

VIEWS_PER_STEP = 16
VIEWS_PER_BATCH = 512
LOOKED_AT = 500
"""Training pictures that statistics of the trained network are taken from."""
MOVED = 2
"""Pixels that training pictures are shifted by at most, as iDECODe's are."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OneClass(OnNetwork):
    """A network, the views of x that it is shown, and what else `fit` found."""

    hidden: ClassVar[int] = 0
    """Width of a hidden layer of the head."""
    mirrored: ClassVar[bool] = True
    """Whether half of the training pictures are mirrored."""
    adam: ClassVar[float | None] = None
    """The constant rate of Adam, where that is published and SGD fails."""

    views: Tensor  # (views, 3, 3): output-to-input matrices

    @classmethod
    @abstractmethod
    def views_of(cls, size: int) -> Tensor:
        """The matrices of the views (views, 3, 3)."""

    @classmethod
    def outputs(cls, views: int) -> int:
        """What the head answers."""
        return views

    @classmethod
    @abstractmethod
    def loss(cls, network: Equivariant, gx: Tensor, which: Tensor, learned: dict[str, Tensor]) -> Tensor:
        """Pictures in some of the views gx (batch, m, 3, h, w), and which views these are (m,) -> the mean loss."""

    @classmethod
    def before(cls, network: Equivariant, x: Tensor) -> dict[str, Tensor]:
        """What must be known before training, from training pictures x (N, 3, size, size) in [0, 1]."""
        return {}

    @classmethod
    def after(cls, network: Equivariant, x: Tensor, views: Tensor) -> dict[str, Tensor]:
        """What is taken from the trained network, by the names of fields."""
        return {}

    @classmethod
    def fit(  # type: ignore[override]  # it learns a network of its own, so it takes pictures, not features
        cls, pictures: NDArray[np.uint8], budget: Budget | None = None, **parts: Any
    ) -> Self:
        """From training pictures of the class (N, h, w, 3), uint8."""
        budget = budget or Budget()
        x = checked_pictures(pictures, budget.size)
        views = cls.views_of(budget.size)
        network = fresh_network(cls.outputs(len(views)), x, budget, hidden=cls.hidden)
        some = x[torch.linspace(0, len(x) - 1, min(LOOKED_AT, len(x))).long()].float() / 255
        found = cls.before(network, some)
        step = partial(cls.step, views=views, learned=found, batch=budget.batch)
        network = learn(network, step, x, budget, adam=cls.adam)
        parts |= {**found, **cls.after(network, some, views)}
        return cls(model=network, views=views, preprocessing=Preprocessing(budget.size), **parts)

    @classmethod
    def step(
        cls,
        network: Equivariant,
        draw: Draw,
        generator: torch.Generator,
        *,
        views: Tensor,
        learned: dict[str, Tensor],
        batch: int,
    ) -> Tensor:
        """The loss of one step."""
        gx, which = cls.shown(draw, generator, views, batch)
        return cls.loss(network, gx, which, learned)

    @classmethod
    def shown(
        cls, draw: Draw, generator: torch.Generator, views: Tensor, batch: int
    ) -> tuple[Tensor, Tensor]:
        """A few of the views, and as many pictures as make up a batch in each of them: what `loss` takes."""
        which = torch.randperm(len(views), generator=generator)[:VIEWS_PER_STEP]
        x = draw(max(1, batch // len(which)))
        return seen_in(x, moved(len(x), x.shape[-1], cls.mirrored, generator) @ views[which]), which

    def strangeness(self, x: Tensor) -> Tensor:
        z = encode_views(self.model, x, self.views)
        return self.of_features(z, self.model.decode(None, z))

    @abstractmethod
    def of_features(self, z: Tensor, logits: Tensor) -> Tensor:
        """Features (batch, views, d) and answers (batch, views, outputs) of all views -> scores (batch,)."""

    def says(self, x: Tensor) -> str:
        return f"asked about {len(self.views)} view{'s' * (len(self.views) > 1)} of it"


def encode_views(network: Equivariant, x: Tensor, views: Tensor) -> Tensor:
    """Features of all views of x (batch, 3, h, w): (batch, views, d)."""
    gx = seen_in(x, views.expand(len(x), -1, -1, -1))
    z: Tensor = in_pieces(network.encode, gx.flatten(0, 1), VIEWS_PER_BATCH).unflatten(0, gx.shape[:2])
    return z


def moved(count: int, size: int, mirrored: bool, generator: torch.Generator) -> Tensor:
    """Random shifts by a few pixels, and mirror images of half of the pictures: (count, 1, 3, 3)."""
    matrices = torch.eye(3, dtype=torch.float64).repeat(count, 1, 1)
    matrices[:, :2, 2] = torch.randint(-MOVED, MOVED + 1, (count, 2), generator=generator).double()
    if mirrored:
        flipped = torch.rand(count, generator=generator) < 0.5
        matrices[flipped, 0, 0] = -1
        matrices[flipped, 0, 2] += size
    return matrices[:, None]
