"""From sounds to score vectors V (Eq. 4): the Scorer for audio.

M names a class for each block of 128 frames; M(x) of a clip is the mean of its blocks' softmax outputs. Each block
of each clip has masks of its own, drawn with the clip's key.

The masked versions of a sound, for display: a small picture of each spectrogram, hidden parts grey.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.audio.features import LogMel
from idecode_core.audio.read import Sound, decode
from idecode_core.device import CPU
from idecode_core.draws import Prepared, content_key
from idecode_core.errors import CheckpointError, SettingError
from idecode_core.models.pieces import in_pieces, with_weights
from idecode_core.models.vgg import VGG, VGGConfig, blank_vgg
from idecode_core.ncm import BASE_NCMS, ERROR
from idecode_core.scorer import (
    VARIANTS_PER_BATCH,
    Inspected,
    NetworkScorer,
    Variant,
    Vectors,
    prepared,
    terms_by_draw,
)
from idecode_core.transforms import SpecAugment, build_transforms

HIDDEN = (140, 140, 140)
# Dark blue to yellow with steadily rising lightness (anchors of cividis, made for colour-blind eyes).
ANCHORS = np.array(
    [(0, 34, 78), (53, 69, 108), (102, 105, 112), (148, 142, 119), (200, 183, 103), (254, 232, 56)], float
)
LOW, HIGH = -2.0, 2.5  # standardised values shown as the darkest and the brightest colour


def sound_variants(
    transforms: SpecAugment,
    classes: Sequence[str],
    blocks: Tensor,
    parameters: Tensor,
    shares: Tensor,
    scores: NDArray[np.float64],
) -> tuple[Variant, ...]:
    """One clip's variants: blocks (blocks, bands, frames), parameters (n, blocks, masks, 2), M's softmax outputs
    (n, classes), scores (n,)."""
    frames, bands = transforms.keep(parameters)  # (n, blocks, frames), (n, blocks, bands)
    return tuple(
        Variant(
            spectrogram_picture(blocks, bands[i][..., :, None] & frames[i][..., None, :]),
            applied,
            answer(shares[i], classes),
            float(scores[i]),
            i,
        )
        for i, applied in enumerate(transforms.describe(parameters))
    )


def answer(shares: Tensor, classes: Sequence[str]) -> str:
    """What M said, in words. shares (classes,)."""
    best = int(shares.argmax())
    name = classes[best].replace("_", " ") if classes else f"class {best}"
    return f"{name} ({float(shares[best]):.0%} sure)"


def spectrogram_picture(blocks: Tensor, keep: Tensor | None = None) -> NDArray[np.uint8]:
    """Blocks (blocks, bands, frames), side by side; `keep` (bool, same shape) tells what is not hidden."""
    values = _side_by_side(blocks)  # (bands, time)
    place = np.clip((values - LOW) / (HIGH - LOW), 0, 1) * (len(ANCHORS) - 1)
    colours = np.stack([np.interp(place, np.arange(len(ANCHORS)), ANCHORS[:, c]) for c in range(3)], axis=-1)
    if keep is not None:
        colours[~_side_by_side(keep)] = HIDDEN
    return np.ascontiguousarray(colours[::-1].round().astype(np.uint8))


def _side_by_side(blocks: Tensor) -> NDArray[Any]:
    return blocks.cpu().permute(1, 0, 2).flatten(1).numpy()


SMALLEST_SHARE = 1e-30  # keeps the logarithm of a softmax output finite


@dataclass(frozen=True, eq=False)
class Clip:
    """A sound as the model sees it."""

    sound: Sound  # at the detector's rate
    blocks: Tensor  # (blocks, bands, frames), standardised


@dataclass(frozen=True, eq=False)
class BlockScores:
    """How strange each block of a long sound is on its own."""

    seconds: Vectors  # (blocks, 2): from, to
    scores: Vectors  # (blocks, n)


@dataclass(frozen=True, eq=False)
class InspectedSound(Inspected):
    """A sound in full: also its draws, and each block on its own, with the same masks."""

    clip: Clip
    parameters: Tensor  # (n, blocks, masks, 2)
    by_block: BlockScores


class TakesSounds:
    """For a scorer with these fields: the methods of `Scorer` that are about its input, and each clip's own masks."""

    modality: ClassVar[str] = "audio"
    features: LogMel
    transforms: SpecAugment
    device: torch.device

    def decode(self, samples: Any) -> Iterator[Any]:
        return decode(samples)

    def prepare(self, decoded: Sound, seed: int) -> Prepared:
        sound = decoded.at(self.features.sample_rate)
        return Prepared(
            content_key(sound.samples, seed), seed, Clip(sound, self.features.blocks(sound.samples))
        )

    def draw(self, point: Prepared, n: int) -> Tensor:
        """The clip's own draws: (n, blocks, masks, 2)."""
        return self.transforms.sample(point.key[None], n, len(point.x.blocks))[0]

    def stretches(self, sound: Sound) -> Vectors:
        """Begin and end of each block of a sound in seconds: (blocks, 2)."""
        frames = 1 + len(sound.samples) // self.features.hop
        starts = np.array(self.features.block_starts(frames)) * self.features.hop / self.features.sample_rate
        ends = np.minimum(starts + self.features.block_seconds, sound.seconds)
        return np.stack([starts, ends], axis=1)


@dataclass(frozen=True, eq=False)
class AudioScorer(TakesSounds, NetworkScorer):
    """M, G and the base NCM for sounds, with the features that belong to them."""

    kind: ClassVar[str] = "audio"
    title: ClassVar[str] = "iDECODe on sounds"
    summary: ClassVar[str] = (
        "how much the model's answer changes when parts of the sound are hidden, by a base NCM"
    )
    input_field: ClassVar[str] = "features"

    model: VGG
    transforms: SpecAugment
    base_ncm: str
    features: LogMel
    device: torch.device = CPU
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        known = [name for name, ncm in BASE_NCMS.items() if ncm.against == "x" and not ncm.familiarity]
        if self.base_ncm not in known:
            raise SettingError(
                f"No base NCM for sounds is called {self.base_ncm!r}; expected one of {', '.join(known)}."
            )
        self.model.to(self.device).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]

    def batches(
        self, base_ncms: Sequence[str], samples: Any, n: int, seed: int
    ) -> Iterator[tuple[dict[str, Vectors], list[Tensor]]]:
        for batch in by_blocks(prepared(self, samples, seed), VARIANTS_PER_BATCH // n):
            drawn = [self.draw(point, n) for point in batch]
            with torch.inference_mode():
                per_block, on_x = self.predict([point.x for point in batch], drawn)
                prediction = torch.stack([clip_mean(shares) for shares in per_block])  # (batch, n, classes)
                reference = torch.stack([clip_mean(shares) for shares in on_x])  # (batch, classes)
                yield (
                    {
                        name: held_against(name, prediction, reference).cpu().double().numpy()
                        for name in base_ncms
                    },
                    drawn,
                )

    def predict(self, clips: Sequence[Clip], drawn: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Softmax outputs of M, per clip: on the variants (n, blocks, classes), and on x (blocks, classes)."""
        x = [clip.blocks.to(self.device) for clip in clips]
        gx = [self.transforms.apply(blocks[None], g[None])[0] for blocks, g in zip(x, drawn, strict=True)]
        shares = self.block_shares(torch.cat([*x, *(variants.flatten(0, 1) for variants in gx)]))
        sizes = [len(blocks) for blocks in x] + [variants.shape[0] * variants.shape[1] for variants in gx]
        parts = shares.split(sizes)
        on_variants = [
            part.unflatten(0, g.shape[:2]) for part, g in zip(parts[len(clips) :], drawn, strict=True)
        ]
        return on_variants, list(parts[: len(clips)])

    def block_shares(self, blocks: Tensor) -> Tensor:
        """Blocks (b, bands, frames) -> softmax outputs (b, classes)."""
        return in_pieces(self.model, blocks, VARIANTS_PER_BATCH).softmax(dim=-1)

    def logits(self, samples: Any) -> Tensor:
        """M(x) of each clip, without masks, as the log of its softmax outputs: (N, classes). What a classifier says."""
        with torch.inference_mode():
            rows = [
                self.block_shares(point.x.blocks.to(self.device)).mean(dim=0).cpu()
                for point in prepared(self, samples, seed=0)
            ]
        return log_shares(torch.stack(rows))

    def inspect_prepared(self, point: Prepared, n: int) -> InspectedSound:
        drawn = self.draw(point, n)
        with torch.inference_mode():
            (variants,), (on_x,) = self.predict([point.x], [drawn])  # (n, blocks, classes), (blocks, classes)
            scores = held_against(self.base_ncm, clip_mean(variants)[None], clip_mean(on_x)[None])[0]
            by_block = held_against(self.base_ncm, log_shares(variants.transpose(0, 1)), log_shares(on_x))
        vector = scores.cpu().double().numpy()
        shown = sound_variants(
            self.transforms, self.classes, point.x.blocks, drawn, variants.mean(dim=1).cpu(), vector
        )
        return InspectedSound(
            vector,
            shown,
            terms_by_draw({ERROR: vector}),
            point.x,
            drawn,
            BlockScores(self.stretches(point.x.sound), by_block.cpu().double().numpy()),
        )

    @classmethod
    def build(
        cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
    ) -> "AudioScorer":
        """The inverse of `settings` and `tensors`."""
        config = VGGConfig(**{**settings["model"], "widths": tuple(settings["model"]["widths"])})
        model = with_weights(lambda: blank_vgg(config), tensors)
        return cls(
            model,
            build_masks(settings["transforms"]),
            settings["base_ncm"],
            LogMel(**settings["features"]),
            device,
            tuple(settings["classes"]),
        )


def build_masks(settings: Mapping[str, Any]) -> SpecAugment:
    """G of a saved scorer of sounds."""
    transforms = build_transforms(settings)
    if not isinstance(transforms, SpecAugment):
        raise CheckpointError(
            f"config.json names the transforms {settings['name']!r} for sounds: expected 'specaugment'. Use the folder as it "
            "was saved."
        )
    return transforms


def by_blocks(points: Iterator[Prepared], most: int) -> Iterator[list[Prepared]]:
    """Clips, as many together as have at most `most` blocks; at least one."""
    batch: list[Prepared] = []
    for point in points:
        if batch and sum(len(other.x.blocks) for other in (*batch, point)) > most:
            yield batch
            batch = []
        batch.append(point)
    if batch:
        yield batch


def held_against(base_ncm: str, prediction: Tensor, reference: Tensor) -> Tensor:
    """The base NCM of M(g(x)) (batch, m, classes) against M(x) (batch, classes), both as logits: (batch, m)."""
    target = torch.zeros(prediction.shape[:2], dtype=torch.int64)  # none: g' is the identity
    return BASE_NCMS[base_ncm](prediction, reference, target)


def clip_mean(shares: Tensor) -> Tensor:
    """Softmax outputs of blocks (..., blocks, classes) -> log of the clip's mean output (..., classes)."""
    return log_shares(shares.mean(dim=-2))


def log_shares(shares: Tensor) -> Tensor:
    """Logits with these softmax outputs, which is what the base NCMs take."""
    return shares.clamp_min(SMALLEST_SHARE).log()
