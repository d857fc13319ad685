"""What the feature scorers share: a frozen network, G, and features of unit length of g(x).

The base score A(X_tr, x; g) (Eq. 2) is a distance of f(g(x)) from the features of the proper training set, so g' is the
identity as in Eq. 3. A subclass says which distance: one file each.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from idecode_core.baselines.fitted import FittedScorer, network_tensors, network_weights
from idecode_core.device import CPU
from idecode_core.draws import Prepared
from idecode_core.errors import SettingError
from idecode_core.image.features import Preprocessing, eight_bits
from idecode_core.image.pictures import TakesPictures
from idecode_core.models.equivariant import Encoder, ModelConfig
from idecode_core.models.pieces import in_pieces
from idecode_core.models.restore import with_weights
from idecode_core.scorer import Samples, Settings, Variant, Vectors, chunks, prepared
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
        self.model.to(self.device).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]

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
class FeatureScorer(Features, FittedScorer):
    """Features, and what is far from those of the proper training set. `classes` are the user's, if there are any."""

    def __post_init__(self) -> None:
        Features.__post_init__(self)
        FittedScorer.__post_init__(self)

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

    def scored(self, points: Sequence[Prepared], n: int) -> tuple[Vectors, Tensor]:
        drawn, _, z = self.variants(points, n)
        return self.draw_scores(z, n), drawn

    def draw_scores(self, z: Tensor, n: int) -> Vectors:
        """Features of all variants (batch, m, d) -> one score per draw (batch, n)."""
        with torch.inference_mode():
            found = self.distances(z.flatten(0, 1)).unflatten(0, z.shape[:2])
        vectors: Vectors = found.cpu().double().numpy().reshape(len(z), n, -1).mean(axis=2)
        return vectors

    def looked_at(self, point: Prepared, n: int) -> tuple[Vectors, tuple[Variant, ...]]:
        drawn, gx, z = self.variants([point], n)
        each = self.draw_scores(z, z.shape[1])[0]  # (m,): one per variant
        images = eight_bits(gx[0])
        with torch.inference_mode():
            closest = [self.classes[int(c)] for c in self.nearest(z[0])] if self.classes else []
        said = [f"closest to {name}" for name in closest] or [f"distance {score:.3g}" for score in each]
        applied = self.transforms.describe(drawn[0])
        shown = tuple(
            Variant(images[i], applied[i], said[i], float(each[i]), i // self.transforms.variants)
            for i in range(len(each))
        )
        return self.draw_scores(z, n)[0], shown

    def describe(self, parameters: Tensor) -> list[str]:
        return self.transforms.describe(parameters)

    def settings(self) -> Settings:
        return {
            **super().settings(),
            "model": asdict(self.model.config),
            "transforms": transform_settings(self.transforms),
        }

    def tensors(self) -> dict[str, Tensor]:
        return {**network_tensors(self.model), **super().tensors()}

    @classmethod
    def rest(cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        config = ModelConfig.read(settings["model"])
        return {
            "model": with_weights(lambda: blank(config), network_weights(tensors)),
            "transforms": build_transforms(settings["transforms"]),
        }


def blank(config: ModelConfig) -> Frozen:
    """A frozen network before its weights are loaded; torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=()):
        return Frozen(config)


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
