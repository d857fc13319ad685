"""What one-class rivals with a network share: they learn it from pictures of one class, by asking about fixed views of them.

A subclass says which views, what is asked (`loss`) and how strange the answers are (`of_features`). Backbone, schedule,
moving average of the weights and optimiser are those of iDECODe's one-class recipes (training/recipes.py), so that methods
differ by what they ask, not by how long they were trained.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from idecode_core.errors import InputError, TrainingError
from idecode_core.image.features import Preprocessing
from idecode_core.models import Equivariant, ModelConfig
from idecode_core.models.backbones import Compact
from idecode_core.models.pieces import in_pieces
from idecode_core.scorers.once import OnceScorer
from idecode_core.transforms.base import rotation_matrices, warp

QUARTER_TURNS = (0, 90, 180, 270)
SHIFT = 0.25
"""Of the side: 8 pixels of 32, as Golan and El-Yaniv (2018) and Hendrycks et al. (2019) have it."""


def seen_in(x: Tensor, views: Tensor) -> Tensor:
    """Pictures (batch, c, h, w) in their views (batch, m, 3, 3): (batch, m, c, h, w)."""
    return warp(x, views, outside="mirrored")


def shift_matrix(right: float, down: float) -> Tensor:
    """The picture moved by so many pixels: (3, 3)."""
    matrix = torch.eye(3, dtype=torch.float64)
    matrix[0, 2], matrix[1, 2] = -right, -down
    return matrix


def mirror_matrix(size: int) -> Tensor:
    """Left and right exchanged: (3, 3)."""
    matrix = torch.diag(torch.tensor([-1.0, 1.0, 1.0], dtype=torch.float64))
    matrix[0, 2] = size
    return matrix


def quarter_turns(size: int) -> Tensor:
    """Gidaris et al. (2018): (4, 3, 3)."""
    return rotation_matrices(torch.tensor(QUARTER_TURNS), size, size)


def turned_and_shifted(size: int) -> Tensor:
    """Hendrycks et al. (2019): shifts to the right and down, each by -1/4, 0 or 1/4 of the side, then a quarter turn:
    (36, 3, 3). The turn changes fastest, then the shift down."""
    far = round(SHIFT * size)
    shifts = [shift_matrix(right * far, down * far) for right, down in product((-1, 0, 1), repeat=2)]
    return torch.stack([shift @ turn for shift in shifts for turn in quarter_turns(size)])


def geometric(size: int) -> Tensor:
    """Golan and El-Yaniv (2018): mirrored or not, shifted, turned: (72, 3, 3)."""
    views = turned_and_shifted(size)
    return torch.cat([views, mirror_matrix(size) @ views])


def affine(size: int, count: int = 16) -> Tensor:
    """Bergman and Hoshen (2020) draw random matrices; here they act on the plane of the picture, about its middle, and are
    always the same: (count, 3, 3)."""
    generator = torch.Generator().manual_seed(0)
    middle = shift_matrix(-size / 2, -size / 2)
    matrices = torch.eye(3, dtype=torch.float64).repeat(count, 1, 1)
    matrices[:, :2, :2] = torch.randn(count, 2, 2, generator=generator, dtype=torch.float64)
    lengths = torch.linalg.det(matrices[:, :2, :2]).abs().sqrt()  # as large as before, whatever was drawn
    matrices[:, :2, :2] /= lengths[:, None, None]
    return middle @ matrices @ shift_matrix(size / 2, size / 2)


Draw = Callable[[int], Tensor]
"""So many pictures of the training set at random, floats in [0, 1]: (count, 3, size, size)."""
Loss = Callable[[Equivariant, Draw, torch.Generator], Tensor]
FEWEST = 2
AVERAGED = 0.99


@dataclass(frozen=True)
class Budget:
    """What a rival may spend."""

    steps: int = 1596
    """Twelve epochs of 4,275 pictures in four views."""
    batch: int = 128
    """Pictures, or views of pictures, that go through the network per step."""
    widths: tuple[int, ...] = (16, 64, 128)
    size: int = 24
    learning_rate: float = 0.1
    seed: int = 0


def checked_pictures(pictures: NDArray[np.uint8], size: int) -> Tensor:
    """Training pictures (N, h, w, 3), uint8, at the model's size: (N, 3, size, size)."""
    pictures = np.asarray(pictures)
    if pictures.ndim != 4 or pictures.shape[3] != 3 or pictures.dtype != np.uint8:
        hint = " Some of them are not finite." if not np.isfinite(pictures.astype(float)).all() else ""
        raise InputError(
            f"Expected training pictures as uint8 (N, h, w, 3), got {pictures.dtype} {pictures.shape}.{hint} Convert them "
            "first."
        )
    if len(pictures) < FEWEST:
        raise InputError(
            f"Expected at least {FEWEST} training pictures, got {len(pictures)}; add pictures, or check that the class is in "
            "the dataset."
        )
    if (pictures == pictures[0]).all():
        raise InputError(
            f"All {len(pictures)} training pictures are alike: expected different ones, or there is nothing to learn. Add "
            "others."
        )
    return torch.from_numpy(Preprocessing(size).resize(pictures)).permute(0, 3, 1, 2).contiguous()


def fresh_network(outputs: int, x: Tensor, budget: Budget, *, hidden: int = 0) -> Equivariant:
    """The compact backbone before training, its stem whitened on training pictures x (N, 3, size, size), uint8."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(budget.seed)
        network = Equivariant(ModelConfig("compact", outputs=outputs, hidden=hidden, widths=budget.widths))
    assert isinstance(network.backbone, Compact)
    network.backbone.whiten(network.normalise(x.float() / 255))
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network


def learn(
    network: Equivariant, loss: Loss, x: Tensor, budget: Budget, *, adam: float | None = None
) -> Equivariant:
    """Minimise a loss on training pictures x (N, 3, size, size), uint8; gives the average of the weights.

    SGD with momentum and one cycle of the learning rate; with `adam`, Adam at that constant rate.
    """
    generator = torch.Generator().manual_seed(budget.seed)
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    rate = adam or budget.learning_rate
    optimiser: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler
    if adam:
        optimiser = torch.optim.Adam(weights, rate, weight_decay=1e-6)
        schedule = torch.optim.lr_scheduler.ConstantLR(optimiser, factor=1.0)
    else:
        optimiser = torch.optim.SGD(weights, rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
        cycle: dict[str, Any] = {"pct_start": 0.2, "anneal_strategy": "linear", "cycle_momentum": False}
        cycle |= {"div_factor": 10, "final_div_factor": 50}
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=budget.steps, **cycle)
    average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(AVERAGED), use_buffers=True)

    def draw(count: int) -> Tensor:
        return x[torch.randint(len(x), (count,), generator=generator)].float() / 255

    network.train()
    for step in range(budget.steps):
        error = loss(network, draw, generator)
        if not torch.isfinite(error):
            raise TrainingError(
                f"The loss became {error.item()} in step {step + 1}: expected a finite number. Lower the learning rate."
            )
        optimiser.zero_grad(set_to_none=True)
        error.backward()
        optimiser.step()
        schedule.step()
        average.update_parameters(network)
    learned = average.module
    assert isinstance(learned, Equivariant)
    return learned.requires_grad_(False).eval()


VIEWS_PER_STEP = 16
VIEWS_PER_BATCH = 512
SOME = 500
"""Training pictures that statistics of the trained network are taken from."""
MOVED = 2
"""Pixels that training pictures are shifted by at most, as iDECODe's are."""


def view_error(network: Equivariant, gx: Tensor, which: Tensor, learned: dict[str, Tensor]) -> Tensor:
    """Which view is it? The mean cross-entropy of the answers."""
    z = network.encode(gx.flatten(0, 1)).unflatten(0, gx.shape[:2])
    return cross_entropy(network.decode(None, z).flatten(0, 1), which.expand(len(gx), -1).flatten())


@dataclass(frozen=True, eq=False, kw_only=True)
class OneClass(OnceScorer):
    """A network, the views of x that it is shown, and what else `fit` found."""

    hidden: ClassVar[int] = 0
    """Width of a hidden layer of the head."""
    outputs: ClassVar[int] = 0
    """Answers of the head; 0: one per view."""
    mirrored: ClassVar[bool] = True
    """Whether half of the training pictures are mirrored."""
    adam: ClassVar[float | None] = None
    """The constant rate of Adam, where that is published and SGD fails."""
    views_of = staticmethod(quarter_turns)
    """Size of the pictures -> the matrices of the views (views, 3, 3)."""
    loss = staticmethod(view_error)
    """Pictures in some of the views gx (batch, m, 3, h, w), which views these are (m,), what `before` found -> the mean loss."""

    model: Equivariant
    views: Tensor  # (views, 3, 3): output-to-input matrices

    @staticmethod
    def before(network: Equivariant, x: Tensor) -> dict[str, Tensor]:
        """What must be known before training, from training pictures x (N, 3, size, size) in [0, 1]."""
        return {}

    @staticmethod
    def after(network: Equivariant, x: Tensor, views: Tensor) -> dict[str, Tensor]:
        """What is taken from the trained network, by the names of fields."""
        return {}

    @classmethod
    def fit(cls, pictures: NDArray[np.uint8], budget: Budget | None = None, **parts: Any) -> Self:
        """From training pictures of the class (N, h, w, 3), uint8."""
        budget = budget or Budget()
        x = checked_pictures(pictures, budget.size)
        views = cls.views_of(budget.size)
        network = fresh_network(cls.outputs or len(views), x, budget, hidden=cls.hidden)
        some = x[torch.linspace(0, len(x) - 1, min(SOME, len(x))).long()].float() / 255
        learned = cls.before(network, some)

        def step(network: Equivariant, draw: Draw, generator: torch.Generator) -> Tensor:
            return cls.loss(network, *cls.shown(draw, generator, views, budget.batch), learned)

        network = learn(network, step, x, budget, adam=cls.adam)
        parts |= {**learned, **cls.after(network, some, views)}
        return cls(model=network, views=views, preprocessing=Preprocessing(budget.size), **parts)

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

    def answer(self, x: Tensor) -> str:
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
