"""What M learns from sounds: the class of a log-mel block, and not to mind masks (SpecAugment)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from idecode_core.audio.features import LogMel
from idecode_core.audio.scorer import AudioScorer
from idecode_core.audio.sets import SoundSet
from idecode_core.models.vgg import VGG, VGGConfig, blank_vgg
from idecode_core.training.parts import Parts
from idecode_core.training.recipe import Recipe, Sounds
from idecode_core.training.run_state import World
from idecode_core.training.tasks.task import Answer, Batch, in_batches, random_keys
from idecode_core.transforms import SpecAugment

LEVEL_SPREAD = 4.0  # dB: how much louder or quieter a clip is shown


def with_statistics(features: LogMel, decibels: Sequence[Tensor]) -> LogMel:
    """The features with mean and standard deviation of all training frames and bands."""
    values = torch.cat([spectrogram.flatten() for spectrogram in decibels]).double()
    return replace(features, mean=round(float(values.mean()), 4), std=round(float(values.std()), 4))


def mixed(x: Tensor, y: Tensor, alpha: float, generator: np.random.Generator) -> tuple[Tensor, Tensor, float]:
    """mixup (Zhang et al. 2018): at least half of each example, the rest of another; those classes; the share.

    With 16 clips per class the model is soon sure of all it has heard; between examples it learns to be less so.
    """
    if alpha == 0:
        return x, y, 1.0
    share = float(generator.beta(alpha, alpha))
    share = max(share, 1 - share)
    other = generator.permutation(len(x))
    return share * x + (1 - share) * x[other], y[other], share


class AudioTask:
    def __init__(self, recipe: Recipe[Sounds], parts: Parts[SoundSet], device: torch.device) -> None:
        self.recipe, self.parts, self.device, self.shows = recipe, parts, device, recipe.shows
        assert isinstance(recipe.transforms, SpecAugment)
        self.masks = recipe.transforms
        features, sounds = recipe.shows.features, parts.training
        clips = [clip.at(features.sample_rate).samples for clip in sounds.clips]
        decibels = [features.padded(features.decibels(samples)) for samples in clips]  # each (bands, frames)
        self.features = with_statistics(features, decibels)
        shown = [(spectrogram - self.features.mean) / self.features.std for spectrogram in decibels]
        self.y = torch.from_numpy(sounds.y)
        if not recipe.shows.shift:
            blocks = [self.features.cut(clip) for clip in shown]
            self.y = torch.from_numpy(np.repeat(sounds.y, [len(cut) for cut in blocks]))
            shown = list(torch.cat(blocks))
        self.clips = shown  # standardised; without shift each is one block
        self.examples = len(shown)
        self.model = VGGConfig(len(sounds.classes), recipe.shows.widths, recipe.shows.stride)

    def blank(self) -> VGG:
        return blank_vgg(self.model)

    def initialise(self) -> VGG:
        with torch.random.fork_rng():
            torch.manual_seed(self.recipe.seed)
            return VGG(self.model).to(self.device)

    def blocks(self, generator: np.random.Generator) -> Tensor:
        """All examples of an epoch: (examples, bands, frames)."""
        if not self.shows.shift:
            return torch.stack(self.clips)
        turns = [int(generator.integers(clip.shape[1])) for clip in self.clips]
        shown = [
            clip.roll(turn, dims=1)[:, : self.features.block]
            for clip, turn in zip(self.clips, turns, strict=True)
        ]
        levels = generator.normal(0, LEVEL_SPREAD / self.features.std, size=(len(shown), 1, 1))
        return torch.stack(shown) + torch.from_numpy(levels).float()

    def batches(self, epoch: int, world: World) -> Iterator[Batch]:
        seed = self.recipe.seed
        alike = np.random.default_rng([seed, epoch])  # in all processes
        x, order = self.blocks(alike), alike.permutation(self.examples)
        generator = alike if world.size == 1 else np.random.default_rng([seed, epoch, world.rank])
        for chosen in in_batches(order, self.recipe.batch, world):
            y = self.y[chosen].to(self.device)
            shown, others, share = mixed(x[chosen].to(self.device), y, self.shows.mixup, generator)
            if epoch + 1 >= self.shows.masks_from:
                drawn = self.masks.sample(random_keys(len(chosen), generator), 1)
                shown = self.masks.apply(shown[:, None], drawn)[:, 0, 0]  # (batch, bands, frames)
            yield shown, y, others, share

    def validation(self) -> Iterator[Batch]:
        """There are too few clips for a validation part."""
        yield from ()

    def loss(self, model: nn.Module, *batch: Any) -> Answer:
        """Blocks (batch, bands, frames), their classes, the classes of what is mixed in, and the first ones' share."""
        x, y, others, share = batch
        logits: Tensor = model(x)
        loss = share * cross_entropy(logits, y) + (1 - share) * cross_entropy(logits, others)
        return loss, logits.argmax(-1) == y

    def scorer(self, model: nn.Module) -> AudioScorer:
        assert isinstance(model, VGG)
        base_ncm, classes = self.recipe.base_ncm, self.parts.training.classes
        return AudioScorer(model, self.masks, base_ncm, self.features, self.device, classes)
