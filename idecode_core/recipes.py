"""Recipes: everything that determines a trained detector, one frozen dataclass each.

Paper-size recipes follow the paper and facts from its public code; compact ones get the most out of two
CPU cores. `python -m idecode_core train NAME` runs one.
"""

from dataclasses import dataclass, replace
from typing import Literal

from idecode_core.audio_recipes import AUDIO_RECIPES
from idecode_core.errors import SettingError
from idecode_core.models import ModelConfig, pretrained
from idecode_core.transforms import Projective, Rotations, SharpRotations, SmallAffine, TransformSet


@dataclass(frozen=True)
class Recipe:
    name: str
    dataset: str
    """Training set, as in `<root>/<dataset>-train.npz`."""
    model: ModelConfig
    transforms: TransformSet
    base_ncm: str
    task: Literal["transform_class", "transform_parameters", "label"]
    """What M learns: the class of g, the parameters of g (Gaussian NLL), or the label (augmented by G)."""
    epochs: int
    classes: tuple[int, ...] = ()
    """Train on these classes only (one-class detection); empty for all."""
    size: int = 32
    grey: bool = False
    batch: int = 256
    optimizer: Literal["sgd", "adam"] = "sgd"
    learning_rate: float = 0.2
    head_learning_rate: float | None = None
    """Learning rate of the log-variance head, where it differs."""
    schedule: Literal["one_cycle", "constant"] = "one_cycle"
    weight_decay: float = 5e-4
    flip: bool = True
    crop: int = 0
    """Shift by up to this many pixels (reflecting the border) before g is applied."""
    transformed: float = 1.0
    """Share of the images that are shown transformed."""
    all_ranges: bool = False
    """Show every rotation range of each image in the batch, as the paper's one-class training does."""
    label_smoothing: float = 0.0
    triplet: float = 0.0
    """Weight of the centre-triplet loss (GOAD), margin 0.1."""
    ema: float = 0.0
    """Decay of the exponential moving average of the weights, a step; 0 for none."""
    start_from: str = ""
    """A detector folder whose backbone, of the same kind, training starts from; empty for a fresh one."""
    seed: int = 0


# The superclass of each of CIFAR-100's fine classes.
COARSE = (  # noqa: SIM905
    "4 1 14 8 0 6 7 7 18 3 3 14 9 18 7 11 3 9 7 11 6 11 5 10 7 6 13 15 3 15 0 11 1 10 12 14 16 9 11 5 "
    "5 19 8 8 15 13 14 17 18 10 16 4 17 4 2 0 17 4 18 17 10 3 2 12 12 16 12 1 9 19 2 10 0 1 16 12 9 13 15 13 "
    "16 19 2 4 6 19 5 5 8 19 18 1 2 15 6 0 17 8 14 13"
).split()


def superclass(number: int) -> tuple[int, ...]:
    """The fine classes of a CIFAR-100 superclass."""
    return tuple(fine for fine, coarse in enumerate(COARSE) if int(coarse) == number)


CIFAR_AVT = ModelConfig("resnet34", outputs=8, pair=True, variance=True)
ONE_CLASS_CIFAR10 = ModelConfig("wrn-40-2", outputs=4, pair=True, hidden=256)
ONE_CLASS_CIFAR100 = ModelConfig("resnet18", outputs=4, pair=True, hidden=512)
GREY = ModelConfig("compact", outputs=4, widths=(32, 64, 128), mean=(0.5,) * 3, std=(0.35,) * 3)

_paper_projective = Recipe(
    name="paper-cifar10-projective",
    dataset="cifar10",
    model=CIFAR_AVT,
    transforms=Projective(),
    base_ncm="parameter_error",
    task="transform_parameters",
    epochs=2600,
    batch=100,
    learning_rate=1e-3,
    head_learning_rate=1e-2,
    schedule="constant",
    flip=False,
)
_paper_one_class = Recipe(
    name="paper-cifar10-one-class",
    dataset="cifar10",
    model=ONE_CLASS_CIFAR10,
    transforms=Rotations(),
    base_ncm="cross_entropy",
    task="transform_class",
    epochs=200,
    classes=(0,),
    batch=50,
    optimizer="adam",
    learning_rate=1e-3,
    schedule="constant",
    flip=False,
    all_ranges=True,
    triplet=3.0,
)
_fashion = Recipe(
    name="fashion-rotations",
    dataset="fashion",
    model=GREY,
    transforms=Rotations(per_draw="all"),
    base_ncm="cross_entropy",
    task="transform_class",
    epochs=6,
    size=28,
    grey=True,
    crop=2,
    ema=0.99,
)
_cifar10_rotations = Recipe(
    name="cifar10-rotations",
    dataset="cifar10",
    model=ModelConfig("compact", outputs=4, widths=(64, 256, 256)),
    transforms=SharpRotations(per_draw="all"),
    base_ncm="cross_entropy_and_familiarity",
    task="transform_class",
    epochs=36,
    crop=3,
    ema=0.998,
)
_cifar10_pretrained = replace(
    _cifar10_rotations,
    name="cifar10-rotations-pretrained",
    model=ModelConfig("efficientnet-lite0", outputs=4, mean=pretrained.MEAN, std=pretrained.STD),
    epochs=3,
    size=64,  # at 32 px its five strides leave a single position
    crop=6,
    learning_rate=0.02,
    weight_decay=1e-5,
)
_narrow_rotations = replace(
    _cifar10_rotations,
    name="cifar10-rotations-narrow",
    model=ModelConfig("compact", outputs=4, widths=(32, 128, 256)),
    transforms=Rotations(per_draw="all"),
    epochs=18,
)
_cifar10_projective = replace(
    _narrow_rotations,
    name="cifar10-projective",
    model=ModelConfig("compact", outputs=8, widths=(32, 128, 256), variance=True),
    transforms=Projective(),
    base_ncm="log_parameter_error",
    task="transform_parameters",
    epochs=10,
    optimizer="adam",  # the regression diverges under SGD at rates that learn anything
    learning_rate=1e-3,
    weight_decay=0.0,
    start_from="checkpoints/cifar10-rotations-narrow",
)
_cifar10_invariance = Recipe(
    name="cifar10-invariance",
    dataset="cifar10",
    model=ModelConfig("compact", outputs=10, widths=(64, 256, 256)),
    transforms=SmallAffine(),
    base_ncm="invariance",
    task="label",
    epochs=14,
    crop=3,
    transformed=0.5,
    ema=0.998,
)

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        _fashion,
        replace(_fashion, name="fashion-quick", dataset="fashionmini", epochs=8),
        _cifar10_rotations,
        _cifar10_pretrained,
        _narrow_rotations,
        _cifar10_projective,
        _cifar10_invariance,
        _paper_projective,
        replace(_paper_projective, name="paper-svhn-projective", dataset="svhn"),
        *(replace(_paper_one_class, name=f"paper-cifar10-one-class-{c}", classes=(c,)) for c in range(10)),
        *(
            replace(
                _paper_one_class,
                name=f"paper-cifar100-superclass-{c}",
                dataset="cifar100",
                model=ONE_CLASS_CIFAR100,
                classes=superclass(c),
            )
            for c in range(20)
        ),
    )
}


def get_recipe(name: str) -> Recipe:
    if name not in RECIPES:
        short = [n for n in RECIPES if not n.startswith("paper-c")]
        raise SettingError(
            f"No recipe is called {name!r}. Expected one of {', '.join(short)}, paper-cifar10-projective, "
            f"paper-cifar10-one-class-0..9 or paper-cifar100-superclass-0..19; for sounds {', '.join(AUDIO_RECIPES)}."
        )
    return RECIPES[name]
