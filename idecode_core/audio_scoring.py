"""From sounds to score vectors V (Eq. 4): the Scorer for audio.

M names a class for each block of 128 frames; M(x) of a clip is the mean of its blocks' softmax outputs. Each block
of each clip has masks of its own, drawn with the clip's key.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.draws import content_keys
from idecode_core.errors import InputError, SettingError
from idecode_core.features import LogMel
from idecode_core.models.vgg import VGG
from idecode_core.ncm import BASE_NCMS
from idecode_core.scoring import VARIANTS_PER_BATCH, Progress, Samples, Scored, Variant, check_n
from idecode_core.sounds import Sound, decode_sounds, read_sound
from idecode_core.spectrogram_picture import spectrogram_picture
from idecode_core.transforms.specaugment import SpecAugment

SMALLEST_SHARE = 1e-30  # keeps the logarithm of a softmax output finite


@dataclass(frozen=True, eq=False)
class Clip:
    """A sound as the model sees it."""

    sound: Sound  # at the detector's rate
    blocks: Tensor  # (blocks, bands, frames), standardised


@dataclass(frozen=True, eq=False)
class BlockScores:
    """How strange each block of a long sound is on its own."""

    seconds: NDArray[np.float64]  # (blocks, 2): from, to
    scores: NDArray[np.float64]  # (blocks, n)


@dataclass(frozen=True, eq=False)
class AudioScorer:
    """M, G and the base NCM for sounds, with the features that belong to them."""

    model: VGG
    transforms: SpecAugment
    base_ncm: str
    features: LogMel
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    classes: tuple[str, ...] = ()
    modality: str = "audio"

    def __post_init__(self) -> None:
        known = [name for name, ncm in BASE_NCMS.items() if ncm.against == "x" and not ncm.familiarity]
        if self.base_ncm not in known:
            raise SettingError(
                f"No base NCM for sounds is called {self.base_ncm!r}; expected one of {', '.join(known)}."
            )
        self.model.to(self.device).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]

    def score(self, samples: Samples, *, n: int, seed: int, progress: Progress | None = None) -> Scored:
        check_n(n)
        vectors: list[NDArray[np.float64]] = []
        parameters: list[Tensor] = []
        for batch in self.batches(samples, VARIANTS_PER_BATCH // n):
            drawn = self.draw(batch, n, seed)
            vectors.append(self.base_scores(batch, drawn))
            parameters.extend(drawn)
            if progress is not None:
                progress(len(parameters))
        if not vectors:
            raise InputError("Expected at least one sound, got none; add files or check the folder.")
        return Scored(np.concatenate(vectors), tuple(parameters))

    def clip(self, sound: Sound) -> Clip:
        sound = sound.at(self.features.sample_rate)
        return Clip(sound, self.features.blocks(sound.samples))

    def batches(self, samples: Samples, most: int) -> Iterator[list[Clip]]:
        """Clips, as many together as have at most `most` blocks; at least one."""
        batch: list[Clip] = []
        for sound in decode_sounds(samples):
            clip = self.clip(sound)
            if batch and sum(len(other.blocks) for other in (*batch, clip)) > most:
                yield batch
                batch = []
            batch.append(clip)
        if batch:
            yield batch

    def draw(self, batch: Sequence[Clip], n: int, seed: int) -> list[Tensor]:
        """Each clip's own draws: per clip (n, blocks, masks, 2)."""
        keys = content_keys([clip.sound.samples for clip in batch], seed)
        return [
            self.transforms.sample(key[None], n, len(clip.blocks))[0]
            for key, clip in zip(keys, batch, strict=True)
        ]

    def base_scores(self, batch: Sequence[Clip], drawn: Sequence[Tensor]) -> NDArray[np.float64]:
        """A(X_tr, x; g) for each drawn g (Eq. 2): (batch, n)."""
        with torch.inference_mode():
            per_block, reference = self.predict(batch, drawn)
            prediction = torch.stack([clip_mean(shares) for shares in per_block])  # (batch, n, classes)
            scores = held_against(self.base_ncm, prediction, torch.stack([clip_mean(r) for r in reference]))
        return scores.double().cpu().numpy()

    def predict(self, batch: Sequence[Clip], drawn: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Softmax outputs of M, per clip: on the variants (n, blocks, classes), and on x (blocks, classes)."""
        x = [clip.blocks.to(self.device) for clip in batch]
        gx = [self.transforms.apply(blocks[None], g[None])[0] for blocks, g in zip(x, drawn, strict=True)]
        shares = self.block_shares(torch.cat([*x, *(variants.flatten(0, 1) for variants in gx)]))
        sizes = [len(blocks) for blocks in x] + [variants.shape[0] * variants.shape[1] for variants in gx]
        parts = shares.split(sizes)
        on_variants = [
            part.unflatten(0, g.shape[:2]) for part, g in zip(parts[len(batch) :], drawn, strict=True)
        ]
        return on_variants, list(parts[: len(batch)])

    def block_shares(self, blocks: Tensor) -> Tensor:
        """Blocks (b, bands, frames) -> softmax outputs (b, classes)."""
        return torch.cat([self.model(piece).softmax(dim=-1) for piece in blocks.split(VARIANTS_PER_BATCH)])

    def shares(self, samples: Samples) -> NDArray[np.float64]:
        """M(x) of each clip, without masks: softmax outputs (batch, classes). SBP needs no more."""
        with torch.inference_mode():
            rows = [
                self.block_shares(clip.blocks.to(self.device)).mean(dim=0).double().cpu().numpy()
                for clip in (self.clip(sound) for sound in decode_sounds(samples))
            ]
        return np.stack(rows)

    def block_scores(self, sample: Any, *, n: int, seed: int) -> BlockScores:
        """The base scores of each block on its own, with the same masks as `score`."""
        check_n(n)
        clip = self.clip(read_sound(sample))
        drawn = self.draw([clip], n, seed)
        with torch.inference_mode():
            (variants,), (reference,) = self.predict([clip], drawn)
            logs, reference_logs = (
                log_shares(variants.transpose(0, 1)),
                log_shares(reference),
            )  # (blocks, n, classes)
            scores = held_against(self.base_ncm, logs, reference_logs)
        frames = 1 + len(clip.sound.samples) // self.features.hop
        starts = np.array(self.features.block_starts(frames)) * self.features.hop / self.features.sample_rate
        ends = np.minimum(starts + self.features.block_seconds, clip.sound.seconds)
        return BlockScores(np.stack([starts, ends], axis=1), scores.double().cpu().numpy())

    def describe(self, parameters: Tensor) -> list[str]:
        return self.transforms.describe(parameters)

    def variants(self, sample: Any, *, n: int, seed: int) -> list[Variant]:
        check_n(n)
        clip = self.clip(read_sound(sample))
        drawn = self.draw([clip], n, seed)
        with torch.inference_mode():
            prediction = self.predict([clip], drawn)[0][0].mean(dim=1).cpu()  # (n, classes)
        scores = self.base_scores([clip], drawn)[0]
        frames, bands = self.transforms.keep(drawn[0])  # (n, blocks, frames), (n, blocks, bands)
        return [
            Variant(
                spectrogram_picture(clip.blocks, bands[i][..., :, None] & frames[i][..., None, :]),
                applied,
                self.answer(prediction[i]),
                float(scores[i]),
                i,
            )
            for i, applied in enumerate(self.describe(drawn[0]))
        ]

    def answer(self, shares: Tensor) -> str:
        """What M said, in words. shares (classes,)."""
        best = int(shares.argmax())
        name = self.classes[best].replace("_", " ") if self.classes else f"class {best}"
        return f"{name} ({float(shares[best]):.0%} sure)"


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
