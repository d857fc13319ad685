"""Recipes for sounds: everything that determines a trained audio detector, one frozen dataclass each.

ESC-50 recipes are compact, for two CPU cores; `paper-fsdnoisy18k-set0` to `-set3` are the paper's (App. C.2), for
machines that have that dataset.
"""

from dataclasses import dataclass
from typing import Literal

from idecode_core.errors import SettingError
from idecode_core.features import LogMel
from idecode_core.models.vgg import PAPER_WIDTHS
from idecode_core.sound_sets import ESC50_CATEGORIES
from idecode_core.transforms.specaugment import PAPER_MASKS, SpecAugment


@dataclass(frozen=True)
class AudioRecipe:
    name: str
    dataset: Literal["esc50", "spokendigits", "fsdnoisy18k"]
    part: str
    """Which of the dataset's sets is in-distribution: an ESC-50 category, a number of an FSDnoisy18k set, or ""."""
    features: LogMel
    """Mean and std come from the proper training set."""
    transforms: SpecAugment
    """G: the masks that are drawn for scoring, and in training from epoch `masks_from` on."""
    base_ncm: str
    epochs: int
    widths: tuple[int, ...] = (24, 48, 80, 112)
    stride: int = 2
    batch: int = 32
    learning_rate: float = 2e-3
    schedule: Literal["one_cycle", "steps"] = "one_cycle"
    """`steps` is the paper's: times 0.9 every two epochs."""
    masks_from: int = 10
    """SpecAugment is used from this epoch on (counted from 1)."""
    shift: bool = True
    """Show a random stretch of each clip, turned round in a circle, at a random level; else all blocks as they are."""
    mixup: float = 0.0
    """Both parameters of the Beta distribution that two mixed examples' shares come from; 0 shows examples alone."""
    weight_decay: float = 1e-4
    ema: float = 0.99
    """Decay of the exponential moving average of the weights, a step; 0 for none."""
    calibration_points: int = 75
    seed: int = 0


ESC50 = LogMel(sample_rate=16_000)  # a clip of 5 s is one block
DIGITS = LogMel(sample_rate=16_000, fft=512, hop=128)  # short words need short frames: a block is one second


def _esc50(category: str) -> AudioRecipe:
    return AudioRecipe(
        name=f"esc50-{category}",
        dataset="esc50",
        part=category,
        features=ESC50,
        transforms=SpecAugment(),
        base_ncm="soft_disagreement",
        epochs=80,
        widths=(16, 32, 64, 96),
        masks_from=20,
        mixup=0.3,
    )


def _fsdnoisy18k(number: int) -> AudioRecipe:
    return AudioRecipe(
        name=f"paper-fsdnoisy18k-set{number}",
        dataset="fsdnoisy18k",
        part=str(number),
        features=LogMel(),
        transforms=PAPER_MASKS,
        base_ncm="invariance",
        epochs=30,
        widths=PAPER_WIDTHS,
        stride=1,
        batch=128,
        learning_rate=5e-4,
        schedule="steps",
        shift=False,
        weight_decay=0.0,
        ema=0.0,
    )


AUDIO_RECIPES: dict[str, AudioRecipe] = {
    recipe.name: recipe
    for recipe in (
        *(_esc50(category) for category in ESC50_CATEGORIES),
        AudioRecipe(
            name="spoken-digits",
            dataset="spokendigits",
            part="",
            features=DIGITS,
            transforms=SpecAugment(),
            base_ncm="soft_disagreement",
            epochs=12,
            widths=(16, 32, 64, 96),
            masks_from=4,
            calibration_points=1000,
        ),
        *(_fsdnoisy18k(number) for number in range(4)),
    )
}


def get_audio_recipe(name: str) -> AudioRecipe:
    if name not in AUDIO_RECIPES:
        raise SettingError(f"No audio recipe is called {name!r}. Expected one of {', '.join(AUDIO_RECIPES)}.")
    return AUDIO_RECIPES[name]
