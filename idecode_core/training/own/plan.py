"""Which model for these files on this machine, how large, how long: chosen from what was found, and said beforehand."""

import time
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch

from idecode_core.audio.features import LogMel
from idecode_core.errors import SettingError
from idecode_core.models import ModelConfig
from idecode_core.training.loop import Gradients
from idecode_core.training.own.files import Scan
from idecode_core.training.own.frozen import PACKAGES, is_available
from idecode_core.training.own.parts import SOUND_RATE, OwnSplit, own_dataset
from idecode_core.training.recipe import Pictures, Recipe, Sounds
from idecode_core.training.tasks import Task
from idecode_core.training.tasks.task import steps_per_epoch
from idecode_core.training.world import World
from idecode_core.transforms import SharpRotations, SpecAugment

Model = Literal["mahalanobis", "neighbours", "rotations", "classifier"]
FROZEN: tuple[Model, ...] = ("mahalanobis", "neighbours")
PHOTOGRAPH, SMALL = 224, 128  # sides at which the frozen network sees pictures
SMALL_UP_TO = 96
"""Pictures with a shorter side (the median) are shown at SMALL: enlarging them more adds nothing but time."""
TINY_UP_TO, MANY = 48, 20_000
"""With so many pictures that are so small a network of their own is worth its time."""
SHOWN = {"cpu": 300_000, "cuda": 2_000_000}
"""Pictures that a network of its own is shown in all."""
CLIPS_SHOWN = 12_800
N_MAX = 20


@dataclass(frozen=True)
class Plan:
    """What will be done, and why."""

    model: Model
    size: int
    """Side of the pictures in pixels, or for sounds their rate in Hz."""
    why: str
    fit_draws: int = 1
    """Frozen network: draws of each picture of the proper training set."""
    batch: int = 0
    epochs: int = 0
    grey: bool = False

    @property
    def is_frozen(self) -> bool:
        return self.model in FROZEN

    def words(self) -> str:
        """One sentence."""
        if self.is_frozen:
            distance = {
                "mahalanobis": "Mahalanobis distance",
                "neighbours": "distance from the 5th nearest neighbour",
            }[self.model]
            return (
                f"A frozen ImageNet network (EfficientNet-Lite0) at {self.size} px, {distance} of its features, small warps as "
                f"transforms: {self.why}."
            )
        length = f"{self.epochs} epochs in batches of {self.batch}"
        if self.model == "classifier":
            return f"A small VGG names the class of log-mel blocks, {length}, SpecAugment as transforms: {self.why}."
        grey = ", grey" if self.grey else ""
        return f"A compact network at {self.size} px{grey} learns to name rotations, {length}: {self.why}."


def choose(
    found: Scan, own: OwnSplit, device: torch.device, model: str | None = None, epochs: int | None = None
) -> Plan:
    """The plan for a user's files; `model` and `epochs` are the user's own choice, if any."""
    if model is not None and model not in get_args(Model):
        raise SettingError(f"No model is called {model!r}; expected one of {', '.join(get_args(Model))}.")
    proper = len(own.split.proper)
    side = float(np.median([file.side for file in found.files]))
    if found.modality == "audio":
        if model not in (None, "classifier"):
            raise SettingError(f"{model} is for pictures; sounds have the classifier: leave --model out.")
        why = f"{len(found.classes)} classes to tell apart" if found.classes else "kinds are found by k-means"
        epochs = epochs or int(np.clip(round(CLIPS_SHOWN / proper), 8, 80))
        return Plan("classifier", SOUND_RATE, why, batch=min(32, proper), epochs=epochs)
    if model == "classifier":
        raise SettingError("The classifier is for sounds; for pictures leave --model out, or name another.")
    if model is None:
        model, why = _preferred(proper, side)
    else:
        why = "as you asked"
    if model in FROZEN:
        size = SMALL if side <= SMALL_UP_TO else PHOTOGRAPH
        return Plan(model, size, why, fit_draws=4 if proper <= 1000 else 2 if proper <= 5000 else 1)
    shown = SHOWN["cuda" if device.type == "cuda" else "cpu"]
    epochs = epochs or int(np.clip(round(shown / proper), 4, 100))
    batch = int(np.clip(2 ** int(np.log2(max(proper / 8, 1))), 8, 256))
    grey = all(file.grey for file in found.files)
    return Plan(
        "rotations", 32 if side <= TINY_UP_TO else 64, why, batch=min(batch, proper), epochs=epochs, grey=grey
    )


def _preferred(proper: int, side: float) -> tuple[Model, str]:
    if not is_available():
        return "rotations", (
            f"the packages {' and '.join(PACKAGES)} are not installed, which photographs are better served by"
        )
    if side <= TINY_UP_TO and proper >= MANY:
        return "rotations", f"{proper:,} small pictures are enough to learn from"
    return (
        "mahalanobis",
        f"{proper:,} pictures are too few to learn features from",
    )


def own_recipe(plan: Plan, found: Scan, name: str, summary: str, seed: int) -> Recipe[Any]:
    """The recipe of a plan that trains a network of its own."""
    dataset = own_dataset(found)
    if plan.model == "classifier":
        short = float(np.median([file.side for file in found.files])) < 1.5
        features = (
            LogMel(sample_rate=SOUND_RATE, fft=512, hop=128) if short else LogMel(sample_rate=SOUND_RATE)
        )
        return Recipe(
            name,
            dataset,
            Sounds(features, masks_from=max(2, plan.epochs // 4), mixup=0.3, calibration_points=0),
            SpecAugment(),
            "soft_disagreement",
            epochs=plan.epochs,
            batch=plan.batch,
            optimizer="adamw",
            learning_rate=2e-3,
            weight_decay=1e-4,
            ema=0.99,
            seed=seed,
            summary=summary,
        )
    model = ModelConfig("compact", outputs=4, widths=(32, 64, 128), mean=(0.5,) * 3, std=(0.3,) * 3)
    return Recipe(
        name,
        dataset,
        Pictures(model, "transform_class", size=plan.size, grey=plan.grey, crop=plan.size // 12),
        SharpRotations("all"),
        "cross_entropy_and_familiarity",
        epochs=plan.epochs,
        batch=plan.batch,
        ema=0.99,
        learning_rate=0.1,
        seed=seed,
        summary=summary,
    )


def seconds_to_train(task: Task) -> float:
    """An estimate from two steps on this machine."""
    model = task.initialise()
    gradients, times = Gradients(task, model), []
    with torch.random.fork_rng():
        for batch in task.batches(0, World(0, 1)):
            began = time.monotonic()
            gradients(*batch)[0].backward()
            times.append(time.monotonic() - began)
            if len(times) == 2:
                break
    return min(times) * steps_per_epoch(task) * task.recipe.epochs


def in_words(seconds: float) -> str:
    """About how long.

    >>> in_words(20), in_words(250), in_words(9000)
    ('less than a minute', 'about 4 minutes', 'about 2.5 hours')
    """
    if seconds < 50:
        return "less than a minute"
    return (
        f"about {seconds / 60:.0f} minute{'s' * (seconds >= 90)}"
        if seconds < 5400
        else f"about {seconds / 3600:.1f} hours"
    )
