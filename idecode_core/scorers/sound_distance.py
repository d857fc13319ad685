"""How much closer a sound lies to one kind of the training sounds than to all of them, by features that nobody had to train here.

A sound is described by what a network that was trained on music says of it (models/music_network.py), and by how fast its levels
rise and fall, within bands and over time and pitch at once: its modulation spectrum (Elliott and Theunissen 2009, PLoS Comput.
Biol. 5(3)). Of Gaussians with one shrunk covariance (Lee et al. 2018), the score is the squared distance from the closest class
in units of the mean over classes: what makes a sound far from everything says little of what it is, as in the relative
Mahalanobis distance (Ren et al. 2021, arXiv 2106.09022), which takes a distance off where this divides.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from idecode_core.audio.features import LogMel
from idecode_core.audio.scorer import BlockScores, InspectedSound, TakesSounds, spectrogram_picture
from idecode_core.device import CPU
from idecode_core.models.music_network import MusicNetwork, music_network
from idecode_core.models.pieces import in_pieces, with_weights
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
from idecode_core.scorers.once import (
    AS_IT_IS,
    MODEL,
    check_features,
    read_tensors,
    stored_tensors,
    to_device,
)

HEARD = LogMel(sample_rate=16_000, bands=96, fft=512, hop=256, block=312)
"""What the network was trained to hear, five seconds at once."""
BLOCKS_AT_ONCE = 4  # 120 MB each in the first layer
GROUPS, RATES, SLOPES = 16, 8, 8
"""Of neighbouring bands; of modulations over time, in octaves or so; of modulations over pitch."""
FEWEST = 2


def described(network: MusicNetwork, blocks: Tensor) -> Tensor:
    """Log-mel blocks of one clip in dB (blocks, bands, frames) -> features, the mean over blocks (d,)."""
    heard = in_pieces(network, blocks, BLOCKS_AT_ONCE)
    return torch.cat([heard, modulations(blocks)], dim=1).mean(dim=0)


def modulations(blocks: Tensor) -> Tensor:
    """Log of the modulation power of blocks (blocks, bands, frames): in groups of bands over time, and over time and pitch at once,
    rising and falling: (blocks, d)."""
    bands, frames = blocks.shape[1:]
    window = torch.hann_window(frames, periodic=False, device=blocks.device)
    across = torch.hann_window(bands, periodic=False, device=blocks.device)[:, None]
    rates, slopes = octaves(frames // 2 + 1, RATES), [slice(0, 1), *octaves(bands // 2 + 1, SLOPES)]
    by_band = torch.fft.rfft((blocks - blocks.mean(dim=2, keepdim=True)) * window).abs()
    grouped = by_band.unflatten(1, (GROUPS, bands // GROUPS)).mean(dim=2)  # (blocks, groups, rates)
    parts = [grouped[..., rate].mean(dim=2) for rate in rates]
    both = torch.fft.fft2((blocks - blocks.mean(dim=(1, 2), keepdim=True)) * window * across).abs()
    falling = both.flip(1).roll(1, dims=1)  # its slopes are those of `both` the other way round
    for power in (both, falling):
        for slope in slopes:
            here = power[:, slope]
            parts += [
                here[..., rate].mean(dim=(1, 2))[:, None] for rate in (slice(0, 1), *rates)
            ]  # also still
    return torch.cat([(part + 1e-3).log() for part in parts], dim=1)


def octaves(stop: int, count: int) -> list[slice]:
    """1 to stop in at most `count` parts, each about as many times larger than the one before.

    >>> octaves(9, 3)
    [slice(1, 2, None), slice(2, 4, None), slice(4, 9, None)]
    """
    edges = np.unique(np.round(np.geomspace(1, stop, count + 1)).astype(int)).tolist()
    return [slice(a, b) for a, b in pairwise(edges)]


@dataclass(frozen=True, eq=False, kw_only=True)
class SoundDistance(TakesSounds):
    """Score: min over classes c of d_c / mean over classes of d_c, d_c = (z - mu_c)' S^-1 (z - mu_c); of one class d itself.

    S is shrunk towards a multiple of the identity (Ledoit and Wolf), so S^-1 is another less what few directions take off:
    (1 - D'D) / level. There are no draws: n equal scores have the same rank as one.
    """

    kind: ClassVar[str] = "sound_distance"
    title: ClassVar[str] = "relative distance of a sound's features"
    summary: ClassVar[str] = (
        "the Mahalanobis distance of a sound's features from the closest class, divided by its mean over classes"
    )
    term: ClassVar[str] = "distance from the closest kind of sound"
    most_draws: ClassVar[int] = 1

    features: LogMel
    model: MusicNetwork
    centre: Tensor  # (d,): mean of the training clips' features
    scale: Tensor  # (d,): their spread
    means: Tensor  # (classes, d), standardised
    directions: Tensor  # (r, d): D
    level: Tensor  # (1,)
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
        classes: Sequence[str] = (),
        features: LogMel = HEARD,
        device: torch.device = CPU,
    ) -> Self:
        """From the clips of the proper training set and their classes (N,)."""
        model, nothing = music_network(), torch.zeros(0)
        blank = cls(
            features=features, model=model, centre=nothing, scale=nothing, means=nothing, directions=nothing, level=nothing,
            device=device,
        )  # fmt: skip
        z = torch.stack([blank.encode(point.x.blocks).cpu() for point in prepared(blank, samples, seed=0)])
        return cls(features=features, model=model, classes=tuple(classes), device=device, **learned(z, y))

    def encode(self, blocks: Tensor) -> Tensor:
        """Features of one clip's blocks (blocks, bands, frames): (d,)."""
        with torch.inference_mode():
            return described(self.model, blocks.to(self.device))

    def distances(self, z: Tensor) -> Tensor:
        """Features (..., d) -> squared Mahalanobis distances from each class (..., classes)."""
        away = ((z - self.centre) / self.scale)[..., None, :] - self.means
        with torch.inference_mode():
            along = away @ self.directions.T
            return (away.square().sum(dim=-1) - along.square().sum(dim=-1)) / self.level

    def strangeness(self, z: Tensor) -> Tensor:
        """Features (..., d) -> scores (...)."""
        distances = self.distances(z)
        closest = distances.amin(dim=-1)
        return closest / distances.mean(dim=-1) if len(self.means) > 1 else closest

    def score(
        self, samples: Samples, *, n: int = 1, seed: int = 0, progress: Progress | None = None
    ) -> Scored:
        check_n(n)

        def batches() -> Iterator[tuple[dict[str, Vectors], Tensor]]:
            for point in prepared(self, samples, seed):
                once = float(self.strangeness(self.encode(point.x.blocks)))
                yield {"": np.full((1, n), once)}, torch.zeros(1, n, 0)

        return in_one_pass(batches(), progress, "sound")[""]

    def inspect(self, sample: Any, *, n: int = 1, seed: int = 0) -> InspectedSound:
        check_n(n)
        (point,) = prepared(self, sample, seed)
        clip = point.x
        z = self.encode(clip.blocks)
        distances, score = self.distances(z), float(self.strangeness(z))
        vector = np.full(n, score)
        named = f"closest to {self.classes[int(distances.argmin())]}" if self.classes else f"{score:.3g}"
        shown = (clip.blocks - clip.blocks.mean()) / clip.blocks.std().clamp_min(1e-6)
        variants = tuple(Variant(spectrogram_picture(shown), AS_IT_IS, named, score, i) for i in range(n))
        alone = [np.full(n, float(self.strangeness(self.encode(block[None])))) for block in clip.blocks]
        return InspectedSound(
            vector,
            variants,
            terms_by_draw({self.term: vector}),
            clip,
            torch.zeros(n, 0),
            BlockScores(self.stretches(clip.sound), np.stack(alone)),
        )

    def describe(self, parameters: Tensor) -> list[str]:
        return [AS_IT_IS] * len(parameters)

    def settings(self) -> Settings:
        return {
            "kind": self.kind,
            "base_ncm": self.kind,
            "features": asdict(self.features),
            "classes": list(self.classes),
        }

    def tensors(self) -> dict[str, Tensor]:
        return stored_tensors(self)

    @classmethod
    def build(cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> Self:
        weights = {
            name.removeprefix(MODEL): value for name, value in tensors.items() if name.startswith(MODEL)
        }
        return cls(
            features=LogMel(**settings["features"]),
            model=with_weights(MusicNetwork, weights),
            classes=tuple(settings["classes"]),
            device=device,
            **read_tensors(cls, tensors),
        )


def learned(z: Tensor, y: Tensor) -> dict[str, Tensor]:
    """The Gaussians of features (N, d) of classes y (N,), by the names of the scorer's fields."""
    from sklearn.covariance import ledoit_wolf_shrinkage

    check_features(z, y, FEWEST)
    centre, scale = z.mean(dim=0), z.std(dim=0).clamp_min(1e-6)
    z = (z - centre) / scale
    # half precision, so that they are stored in half the room
    means = torch.stack([z[y == c].mean(dim=0) for c in y.unique()]).half().float()
    spread = (z - means[torch.searchsorted(y.unique(), y)]).double()  # (N, d)
    shrunk = float(ledoit_wolf_shrinkage(spread.numpy(), assume_centered=True))
    level = shrunk * spread.square().sum() / z.numel()
    _, singular, axes = torch.linalg.svd(spread, full_matrices=False)
    # S = level + (1 - shrunk) * spread' spread / N has these axes
    longer = (1 - shrunk) * singular.square() / len(z)
    directions = (axes * (longer / (level + longer)).sqrt()[:, None]).half().float()
    return {
        "centre": centre,
        "scale": scale,
        "means": means,
        "directions": directions,
        "level": level[None].float(),
    }
