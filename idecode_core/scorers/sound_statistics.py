"""How far the statistics of a sound lie from those of the nearest training sound: for folders too small to learn from.

For each mel band, over time: mean, spread, spread of the differences from frame to frame, and the levels that a tenth, a half
and nine tenths of the time stay below. The base score A(X_tr, x; g) (Eq. 2) is the mean squared difference from the nearest
clip of the proper training set, in units of the training set's spread; G are masks, and what they hide is left out, so g' is
the identity as in Eq. 3.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from idecode_core.audio.features import LogMel
from idecode_core.audio.scorer import (
    BlockScores,
    InspectedSound,
    TakesSounds,
    build_masks,
    spectrogram_picture,
)
from idecode_core.device import CPU
from idecode_core.scorer import (
    Progress,
    Samples,
    Scored,
    Settings,
    Variant,
    Vectors,
    check_n,
    in_one_pass,
    prepared,
    terms_by_draw,
)
from idecode_core.scorers.once import check_features, read_tensors, stored_tensors, to_device
from idecode_core.transforms import SpecAugment, transform_settings

QUANTILES = (0.1, 0.5, 0.9)
TERMS = {"level": 1, "spread": 1, "changes": 1, "quiet, usual and loud": len(QUANTILES)}
"""What each band is described by, and in how many numbers."""
FEWEST = 2


def statistics(blocks: Tensor, keep: Tensor) -> Tensor:
    """Blocks of one clip (blocks, bands, frames) and which cells each draw shows (n, blocks, bands, frames) -> statistics of
    each band (n, numbers, bands); NaN where a band is hidden throughout."""
    shown = blocks.where(keep, torch.nan)  # (n, blocks, bands, frames)
    cells = shown.transpose(1, 2).flatten(2)  # (n, bands, time)
    steps = shown.diff(dim=-1).transpose(1, 2).flatten(2)
    levels = torch.tensor(QUANTILES, dtype=cells.dtype, device=cells.device)
    quantiles = cells.nanquantile(levels, dim=-1).transpose(0, 1)  # (n, quantiles, bands)
    return torch.cat(
        [torch.stack([cells.nanmean(dim=-1), spread(cells), spread(steps)], dim=1), quantiles], dim=1
    )


def spread(x: Tensor) -> Tensor:
    """Standard deviation over the last axis, without what is NaN."""
    return (x - x.nanmean(dim=-1, keepdim=True)).square().nanmean(dim=-1).sqrt()


@dataclass(frozen=True, eq=False, kw_only=True)
class SoundStatistics(TakesSounds):
    """Score: the smallest mean over bands and statistics of ((z - z_i) / spread)^2, i in the proper training set."""

    kind: ClassVar[str] = "sound_statistics"
    title: ClassVar[str] = "distance from the nearest sound"
    summary: ClassVar[str] = (
        "the mean squared difference of log-mel statistics over time from those of the nearest training sound, of what the "
        "masks leave"
    )

    features: LogMel
    transforms: SpecAugment
    centre: Tensor  # (numbers, bands): mean of the training clips' statistics
    scale: Tensor  # (numbers, bands): their spread
    bank: Tensor  # (N, numbers, bands): standardised statistics of the training clips
    labels: Tensor  # (N,): their classes
    classes: tuple[str, ...] = ()
    device: torch.device = CPU

    def __post_init__(self) -> None:
        to_device(self)

    @classmethod
    def fit(
        cls,
        samples: Samples,
        y: Tensor,
        *,
        features: LogMel,
        transforms: SpecAugment,
        classes: Sequence[str] = (),
        device: torch.device = CPU,
    ) -> Self:
        """From the clips of the proper training set and their classes (N,)."""
        nothing = torch.zeros(0)
        blank = cls(
            features=features, transforms=transforms, centre=nothing, scale=nothing, bank=nothing, labels=nothing,
            device=device,
        )  # fmt: skip
        z = torch.stack([blank.described(point.x.blocks)[0] for point in prepared(blank, samples, seed=0)])
        check_features(z.flatten(1), y, FEWEST)
        centre, scale = z.mean(dim=0), z.std(dim=0).clamp_min(1e-6)
        bank = ((z - centre) / scale).half().float()  # stored in half the room
        return cls(
            features=features, transforms=transforms, centre=centre, scale=scale, bank=bank, labels=y,
            classes=tuple(classes), device=device,
        )  # fmt: skip

    def described(self, blocks: Tensor, drawn: Tensor | None = None) -> Tensor:
        """One clip's blocks (blocks, bands, frames) -> statistics of each draw (n, numbers, bands); of x itself without any."""
        blocks = blocks.to(self.device)
        keep = torch.ones((1, *blocks.shape), dtype=torch.bool) if drawn is None else self.shown(drawn)
        with torch.inference_mode():
            return statistics(blocks, keep.to(self.device))

    def shown(self, drawn: Tensor) -> Tensor:
        """Which cells masks (n, blocks, masks, 2) do not hide: (n, blocks, bands, frames)."""
        frames, bands = self.transforms.keep(drawn)
        return bands[..., :, None] & frames[..., None, :]

    def nearest(self, described: Tensor) -> tuple[Tensor, Tensor]:
        """Statistics (n, numbers, bands) -> squared differences from the nearest training clip (n, numbers, bands), each
        divided by how many are heard, so that they sum up to the score; and that clip's place (n,)."""
        z = (described - self.centre) / self.scale
        heard = z.isfinite()
        with torch.inference_mode():
            z, weight = z.where(heard, 0.0).flatten(1), heard.float().flatten(1)  # (n, d)
            bank = self.bank.flatten(1)  # (N, d)
            squares = (
                (z.square() * weight).sum(dim=1, keepdim=True) - 2 * z @ bank.T + weight @ bank.square().T
            )
            place = squares.argmin(dim=1)
            differences = weight * (z - bank[place]).square() / weight.sum(dim=1, keepdim=True).clamp_min(1)
        return differences.unflatten(1, self.centre.shape), place

    def draw_scores(self, blocks: Tensor, drawn: Tensor) -> Vectors:
        """(n,)"""
        scores: Vectors = (
            self.nearest(self.described(blocks, drawn))[0].sum(dim=(1, 2)).cpu().double().numpy()
        )
        return scores

    def score(
        self, samples: Samples, *, n: int = 1, seed: int = 0, progress: Progress | None = None
    ) -> Scored:
        check_n(n)

        def batches() -> Iterator[tuple[dict[str, Vectors], list[Tensor]]]:
            for point in prepared(self, samples, seed):
                drawn = self.draw(point, n)
                yield {"": self.draw_scores(point.x.blocks, drawn)[None]}, [drawn]

        return in_one_pass(batches(), progress, "sound")[""]

    def inspect(self, sample: Any, *, n: int = 1, seed: int = 0) -> InspectedSound:
        check_n(n)
        (point,) = prepared(self, sample, seed)
        clip, drawn = point.x, self.draw(point, n)
        differences, place = self.nearest(self.described(clip.blocks, drawn))
        # each (n, numbers)
        by_term = differences.sum(dim=2).cpu().double().split(list(TERMS.values()), dim=1)
        vector = self.draw_scores(clip.blocks, drawn)
        named = [self.classes[int(c)] for c in self.labels[place]] if self.classes else []
        words = [f"closest to {name}" for name in named] or [f"distance {score:.3g}" for score in vector]
        shown, applied = self.shown(drawn), self.transforms.describe(drawn)
        variants = tuple(
            Variant(spectrogram_picture(clip.blocks, shown[i]), applied[i], words[i], float(vector[i]), i)
            for i in range(n)
        )
        alone = [
            self.draw_scores(clip.blocks[b : b + 1], drawn[:, b : b + 1]) for b in range(len(clip.blocks))
        ]
        terms = {name: part.sum(dim=1).numpy() for name, part in zip(TERMS, by_term, strict=True)}
        return InspectedSound(
            vector,
            variants,
            terms_by_draw(terms),
            clip,
            drawn,
            BlockScores(self.stretches(clip.sound), np.stack(alone)),
        )

    def describe(self, parameters: Tensor) -> list[str]:
        return self.transforms.describe(parameters)

    def settings(self) -> Settings:
        return {
            "kind": self.kind,
            "base_ncm": self.kind,
            "features": asdict(self.features),
            "transforms": transform_settings(self.transforms),
            "classes": list(self.classes),
        }

    def tensors(self) -> dict[str, Tensor]:
        return stored_tensors(self)

    @classmethod
    def build(cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> Self:
        return cls(
            features=LogMel(**settings["features"]),
            transforms=build_masks(settings["transforms"]),
            classes=tuple(settings["classes"]),
            device=device,
            **read_tensors(cls, tensors),
        )
