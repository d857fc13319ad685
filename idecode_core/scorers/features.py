"""What the feature scorers share: a frozen network, G, and features of unit length of g(x).

The base score A(X_tr, x; g) (Eq. 2) is a distance of f(g(x)) from the features of the proper training set, so g' is the
identity as in Eq. 3. A subclass says which distance: one file each.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from idecode_core.device import CPU
from idecode_core.draws import Prepared
from idecode_core.image.features import Preprocessing, eight_bits
from idecode_core.image.scorer import TakesPictures
from idecode_core.models.equivariant import Encoder, ModelConfig
from idecode_core.models.pieces import in_pieces
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
from idecode_core.scorers.once import read_network, read_tensors, stored_tensors, to_device
from idecode_core.transforms import TransformSet, build_transforms, transform_settings

PIXELS_PER_BATCH = 2**20  # 20 pictures of 224 x 224: a laptop's caches hold their activations


class Frozen(Encoder):
    """A backbone whose weights stay as they are: pictures in [0, 1] (batch, 3, h, w) -> features of length 1 (batch, d)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.requires_grad_(False).eval()

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.normalize(self.encode(x), dim=-1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Features(TakesPictures):
    """A frozen network, G and the preprocessing that belongs to them: samples -> features of g(x)."""

    model: Frozen
    transforms: TransformSet
    preprocessing: Preprocessing
    device: torch.device = CPU

    def __post_init__(self) -> None:
        to_device(self)

    def points_per_batch(self, n: int) -> int:
        return max(1, PIXELS_PER_BATCH // (n * self.transforms.variants * self.preprocessing.size**2))

    def variants(self, points: Sequence[Prepared], n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Drawn parameters (batch, m, ...), g(x) (batch, m, 3, h, w) and its features (batch, m, d)."""
        x = self.tensor(points)
        drawn = self.transforms.sample(np.stack([point.key for point in points]), n)
        with torch.inference_mode():
            gx = self.transforms.apply(x, drawn)
            together = max(1, PIXELS_PER_BATCH // self.preprocessing.size**2)
            z = in_pieces(self.model, gx.flatten(0, 1), together)
        return drawn, gx, z.unflatten(0, gx.shape[:2])

    def encode(self, samples: Samples, *, n: int, seed: int) -> Tensor:
        """Features of n draws of each sample: (N, n * variants, d), on the CPU."""
        points = prepared(self, samples, seed)  # type: ignore[arg-type]  # it decodes and prepares; that is all that is asked
        return torch.cat([self.variants(c, n)[2].cpu() for c in chunks(points, self.points_per_batch(n))])


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureScorer(Features):
    """Features, and what is far from those of the proper training set. `classes` are the user's, if there are any."""

    kind: ClassVar[str]
    title: ClassVar[str]
    term: ClassVar[str]
    """The one summand of a draw's score, in words a newcomer understands."""
    summary: ClassVar[str]
    """What the number is, in one line."""

    classes: tuple[str, ...] = ()

    @staticmethod
    def blank(config: ModelConfig) -> Frozen:
        """The network before its weights are loaded."""
        return blank(config)

    @classmethod
    @abstractmethod
    def fit(cls, z: Tensor, y: Tensor, **parts: Any) -> Self:
        """From features of the proper training set (N, d) and their classes (N,); `parts` are the fields of this class."""

    @abstractmethod
    def distances(self, z: Tensor) -> Tensor:
        """Features (batch, d) -> how far they lie from those of the training set (batch,)."""

    @abstractmethod
    def nearest(self, z: Tensor) -> Tensor:
        """Features (batch, d) -> the class that each lies closest to (batch,)."""

    def score(
        self, samples: Samples, *, n: int = 1, seed: int = 0, progress: Progress | None = None
    ) -> Scored:
        check_n(n)

        def batches() -> Iterator[tuple[dict[str, Vectors], Tensor]]:
            for points in chunks(prepared(self, samples, seed), self.points_per_batch(n)):
                drawn, _, z = self.variants(points, n)
                yield {"": self.draw_scores(z, n)}, drawn

        return in_one_pass(batches(), progress, "image")[""]

    def draw_scores(self, z: Tensor, n: int) -> Vectors:
        """Features of all variants (batch, m, d) -> one score per draw (batch, n)."""
        with torch.inference_mode():
            scores = self.distances(z.flatten(0, 1)).unflatten(0, z.shape[:2])
        vectors: Vectors = scores.cpu().double().numpy().reshape(len(z), n, -1).mean(axis=2)
        return vectors

    def inspect(self, sample: Any, *, n: int = 1, seed: int = 0) -> Inspected:
        check_n(n)
        drawn, gx, z = self.variants(list(prepared(self, sample, seed)), n)
        scores = self.draw_scores(z, z.shape[1])[0]  # (m,): one per variant
        images, applied = eight_bits(gx[0]), self.transforms.describe(drawn[0])
        with torch.inference_mode():
            closest = [self.classes[int(c)] for c in self.nearest(z[0])] if self.classes else []
        words = [f"closest to {name}" for name in closest] or [f"distance {score:.3g}" for score in scores]
        variants = tuple(
            Variant(images[i], applied[i], words[i], float(scores[i]), i // self.transforms.variants)
            for i in range(len(scores))
        )
        vector = self.draw_scores(z, n)[0]
        return Inspected(vector, variants, terms_by_draw({self.term: vector}))

    def describe(self, parameters: Tensor) -> list[str]:
        return self.transforms.describe(parameters)

    def settings(self) -> Settings:
        return {
            "kind": self.kind,
            "base_ncm": self.kind,
            "preprocessing": asdict(self.preprocessing),
            "classes": list(self.classes),
            "model": self.model.config.settings(),
            "transforms": transform_settings(self.transforms),
        }

    def tensors(self) -> dict[str, Tensor]:
        return stored_tensors(self)

    @classmethod
    def build(cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> Self:
        return cls(
            model=read_network(cls.blank, settings["model"], tensors),
            transforms=build_transforms(settings["transforms"]),
            preprocessing=Preprocessing(**settings["preprocessing"]),
            classes=tuple(settings["classes"]),
            device=device,
            **read_tensors(cls, tensors),
        )


def blank(config: ModelConfig, kind: type[Frozen] = Frozen) -> Frozen:
    """A frozen network before its weights are loaded; torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=()):
        return kind(config)
