"""Train M for sounds: a classifier of log-mel blocks that learns not to mind masks (SpecAugment).

Resumable and seeded like the training for images: every random choice of epoch e comes from (seed, e), and every
epoch ends with an atomic checkpoint.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from idecode_core.audio_recipes import AudioRecipe
from idecode_core.audio_scoring import AudioScorer
from idecode_core.errors import TrainingError
from idecode_core.features import LogMel
from idecode_core.files import write_text
from idecode_core.models.vgg import VGG, VGGConfig, blank_vgg
from idecode_core.run_state import load_state, load_weights, save_state, save_weights
from idecode_core.sound_sets import SoundSet
from idecode_core.tasks import random_keys
from idecode_core.training import ProgressHook, update_average

LEVEL_SPREAD = 4.0  # dB: how much louder or quieter a clip is shown
FASTEST_AT = 0.2  # of the whole training, under one_cycle


@dataclass(frozen=True)
class AudioEpoch:
    """One line of a run's log. There are too few clips for a validation part: the last epoch is kept."""

    epoch: int
    loss: float
    accuracy: float  # on the training blocks, as they were shown
    seconds: float


def read_audio_log(path: Path) -> list[AudioEpoch]:
    return [AudioEpoch(**json.loads(line)) for line in path.read_text().splitlines()]


def rate_factor(recipe: AudioRecipe, epoch: int, progress: float) -> float:
    """What the learning rate is multiplied by: one cycle, or the paper's steps of 0.9 every two epochs."""
    if recipe.schedule == "steps":
        return float(0.9 ** (epoch // 2))
    rising = 0.1 + 0.9 * progress / FASTEST_AT
    return rising if progress < FASTEST_AT else max(0.002, (1 - progress) / (1 - FASTEST_AT))


def spectrograms(sounds: SoundSet, features: LogMel) -> list[Tensor]:
    """Each clip in dB (bands, frames), at least one block long."""
    found = [features.decibels(clip.at(features.sample_rate).samples) for clip in sounds.clips]
    return [features.padded(spectrogram) for spectrogram in found]


def with_statistics(features: LogMel, decibels: Sequence[Tensor]) -> LogMel:
    """The features with mean and standard deviation of all training frames and bands."""
    values = torch.cat([spectrogram.flatten() for spectrogram in decibels]).double()
    return replace(features, mean=round(float(values.mean()), 4), std=round(float(values.std()), 4))


class Blocks:
    """Training clips; each epoch cuts them into standardised blocks."""

    def __init__(self, sounds: SoundSet, features: LogMel, recipe: AudioRecipe) -> None:
        decibels = spectrograms(sounds, features)
        self.features = with_statistics(features, decibels)
        self.clips = [(spectrogram - self.features.mean) / self.features.std for spectrogram in decibels]
        self.y, self.recipe = sounds.y, recipe

    def epoch(self, generator: np.random.Generator) -> tuple[Tensor, Tensor]:
        """All examples of an epoch: blocks (examples, bands, frames) and their classes."""
        if not self.recipe.shift:
            cut = [self.features.cut(clip) for clip in self.clips]
            y = np.repeat(self.y, [len(blocks) for blocks in cut])
            return torch.cat(cut), torch.from_numpy(y)
        turns = [int(generator.integers(clip.shape[1])) for clip in self.clips]
        shown = [
            clip.roll(turn, dims=1)[:, : self.features.block]
            for clip, turn in zip(self.clips, turns, strict=True)
        ]
        levels = generator.normal(0, LEVEL_SPREAD / self.features.std, size=(len(shown), 1, 1))
        return torch.stack(shown) + torch.from_numpy(levels).float(), torch.from_numpy(self.y)


def batches(size: int, batch: int, generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """A random order of `size` examples in whole batches; a last one that is not full waits for the next epoch."""
    order = generator.permutation(size)
    batch = min(batch, size)
    for start in range(0, size - batch + 1, batch):
        yield order[start : start + batch]


def mixed(x: Tensor, y: Tensor, alpha: float, generator: np.random.Generator) -> tuple[Tensor, Tensor, float]:
    """mixup (Zhang et al. 2018): at least half of each example, the rest of another; those classes; the share.

    With 16 clips a class the model is soon sure of all it has heard; between examples it learns to be less so.
    """
    if alpha == 0:
        return x, y, 1.0
    share = float(generator.beta(alpha, alpha))
    share = max(share, 1 - share)
    other = generator.permutation(len(x))
    return share * x + (1 - share) * x[other], y[other], share


def train_audio(
    recipe: AudioRecipe,
    folder: Path,
    sounds: SoundSet,
    *,
    device: torch.device | str = "cpu",
    epochs: int | None = None,
    resume: bool = True,
    progress: ProgressHook | None = None,
) -> AudioScorer:
    """Train M on the proper training set by a recipe; its run is kept in `folder`. Returns the scorer, uncalibrated."""
    device, epochs = torch.device(device), epochs or recipe.epochs
    blocks = Blocks(sounds, recipe.features, recipe)
    config = VGGConfig(len(sounds.classes), recipe.widths, recipe.stride)
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        model = VGG(config).to(device)
    average = blank_vgg(config).to(device)
    average.load_state_dict(model.state_dict())
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    state_path, log_path = folder / "state.safetensors", folder / "log.jsonl"
    start, log = 0, list[AudioEpoch]()
    if resume and state_path.exists():
        start = load_state(state_path, recipe, epochs, model, average, optimizer)
        log = read_audio_log(log_path)[:start]
    for epoch in range(start, epochs):
        began = time.monotonic()
        generator = np.random.default_rng([recipe.seed, epoch])
        x, y = blocks.epoch(generator)
        steps = max(1, len(x) // recipe.batch)
        total, right = 0.0, 0
        model.train()
        for step, chosen in enumerate(batches(len(x), recipe.batch, generator)):
            for group in optimizer.param_groups:
                group["lr"] = recipe.learning_rate * rate_factor(
                    recipe, epoch, (epoch + step / steps) / epochs
                )
            labels = y[chosen].to(device)
            shown, others, share = mixed(x[chosen].to(device), labels, recipe.mixup, generator)
            if epoch + 1 >= recipe.masks_from:
                drawn = recipe.transforms.sample(random_keys(len(chosen), generator), 1)
                shown = recipe.transforms.apply(shown[:, None], drawn)[:, 0, 0]  # (batch, bands, frames)
            logits = model(shown)
            loss = share * cross_entropy(logits, labels) + (1 - share) * cross_entropy(logits, others)
            if not torch.isfinite(loss):
                raise TrainingError(
                    f"The loss became {loss.item()} in epoch {epoch + 1}, step {step + 1} of {recipe.name}: expected a "
                    f"finite number. The state of epoch {epoch} is intact in {folder}; lower the learning rate."
                )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            updates = epoch * steps + step + 1
            update_average(average, model, min(recipe.ema, updates / (updates + 10)))
            total, right = total + loss.item(), right + int((logits.argmax(-1) == labels).sum())
            if progress is not None:
                progress(epoch, step, steps, total / (step + 1))
        accuracy = right / (steps * len(chosen))
        log.append(AudioEpoch(epoch, total / steps, accuracy, time.monotonic() - began))
        write_text(log_path, "".join(json.dumps(vars(entry)) + "\n" for entry in log))
        save_state(state_path, recipe, epochs, epoch + 1, model, average, optimizer)
    save_weights(folder / "best.safetensors", average)
    final = blank_vgg(config)
    load_weights(folder / "best.safetensors", final)
    return AudioScorer(final, recipe.transforms, recipe.base_ncm, blocks.features, device, sounds.classes)
