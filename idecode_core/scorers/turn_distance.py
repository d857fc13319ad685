"""The turn that a picture was given, and how far its features lie from those of training pictures that were turned alike.

Each of G's ranges has a Gaussian of the features of g(x), at length 1, over the proper training set (Lee et al. 2018, arXiv
1807.03888; with transforms as classes: SSD, Sehwag et al. 2021, arXiv 2103.12051, and CSI, Tack et al. 2020, arXiv 2007.08176).
Turn and distance come from the same pass, so n draws cost n passes, and each of them looks at the picture in another way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from idecode_core.errors import SettingError
from idecode_core.image.scorer import ImageScorer
from idecode_core.models import ModelConfig, blank_model
from idecode_core.models.pieces import with_weights
from idecode_core.ncm import RANGES
from idecode_core.scorer import VARIANTS_PER_BATCH, Progress, Samples, chunks, prepared
from idecode_core.scorers.distances import shared_gaussian

LEARNED = "ranges."
"""Of the Gaussians among a scorer's tensors."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TurnDistance(ImageScorer):
    """M, G and a base NCM with a distance; `centre` and `whiten` say where training pictures lie under each range of G."""

    kind: ClassVar[str] = "turn_distance"
    title: ClassVar[str] = "iDECODe on pictures, with distances"
    summary: ClassVar[str] = (
        "how badly the model names the turn, and how far its features lie from those of training pictures that were turned alike"
    )

    centre: Tensor  # (ranges, d): the mean of features under each range
    whiten: Tensor  # (ranges, d, d): L with S^-1 = L L'

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("centre", "whiten"):
            object.__setattr__(self, name, getattr(self, name).to(self.device))

    @classmethod
    def fit(
        cls,
        scorer: ImageScorer,
        samples: Samples,
        *,
        base_ncm: str = "turn_and_distance",
        n: int = 1,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Self:
        """From n draws of each picture of the proper training set."""
        together: list[Tensor] = []
        ranges: list[Tensor] = []
        for points in chunks(prepared(scorer, samples, seed), max(1, VARIANTS_PER_BATCH // n)):
            drawn = scorer.transforms.sample(np.stack([point.key for point in points]), n)
            with torch.inference_mode():
                gx = scorer.transforms.apply(scorer.tensor(points), drawn)
                together.append(normalize(scorer.model.encode(gx.flatten(0, 1)), dim=-1).cpu())
            ranges.append(scorer.transforms.target(drawn).flatten())
            if progress is not None:
                progress(sum(map(len, ranges)) // n)
        z, r = torch.cat(together), torch.cat(ranges)  # (N * n, d), (N * n,)
        counts = torch.bincount(r, minlength=RANGES)
        if counts.min() < 2:
            raise SettingError(
                f"Expected training pictures under each of {RANGES} ranges, got {counts.tolist()}: add training pictures."
            )
        gaussians = [
            shared_gaussian(z[r == place], torch.zeros(int(counts[place]))) for place in range(RANGES)
        ]
        centre, whiten = (torch.stack([gaussian[i] for gaussian in gaussians]) for i in range(2))
        kept = {field.name: getattr(scorer, field.name) for field in fields(ImageScorer)}
        return cls(**kept | {"base_ncm": base_ncm}, centre=centre, whiten=whiten)

    def distances(self, z: Tensor, target: Tensor) -> Tensor:
        """(z - mu_r)' S_r^-1 (z - mu_r) / d for features (batch, m, d) at length 1, r (batch, m) being the range: (batch, m)."""
        z = normalize(z, dim=-1)
        far = z.new_empty(z.shape[:2])
        for place in range(RANGES):
            chosen = target.to(z.device) == place  # (batch, m)
            white = (z[chosen] - self.centre[place]) @ self.whiten[place]
            far[chosen] = white.square().mean(dim=-1)
        return far

    def tensors(self) -> dict[str, Tensor]:
        return super().tensors() | {f"{LEARNED}{name}": getattr(self, name) for name in ("centre", "whiten")}

    @classmethod
    def build(cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> Self:
        config = ModelConfig.read(settings["model"])
        weights = {name: value for name, value in tensors.items() if not name.startswith(LEARNED)}
        learned = {name: tensors[f"{LEARNED}{name}"] for name in ("centre", "whiten")}
        return cls.around(with_weights(lambda: blank_model(config), weights), settings, device, **learned)
