"""The recipes, by name; `python -m idecode_core train NAME` runs one.

Paper-size recipes follow the paper and facts from its public code; compact ones get the most out of two CPU cores.
"""

import re
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal

from idecode_core.audio.features import LogMel
from idecode_core.audio.sets import ESC50_CATEGORIES
from idecode_core.errors import SettingError
from idecode_core.models import ModelConfig, pretrained
from idecode_core.models.vgg import PAPER_WIDTHS
from idecode_core.training.recipe import Pictures, Recipe, Sounds
from idecode_core.transforms import Projective, Rotations, SharpRotations, SmallAffine, SpecAugment, Views
from idecode_core.transforms.specaugment import PAPER_MASKS

# The superclass of each of CIFAR-100's fine classes.
COARSE = (  # noqa: SIM905
    "4 1 14 8 0 6 7 7 18 3 3 14 9 18 7 11 3 9 7 11 6 11 5 10 7 6 13 15 3 15 0 11 1 10 12 14 16 9 11 5 "
    "5 19 8 8 15 13 14 17 18 10 16 4 17 4 2 0 17 4 18 17 10 3 2 12 12 16 12 1 9 19 2 10 0 1 16 12 9 13 15 13 "
    "16 19 2 4 6 19 5 5 8 19 18 1 2 15 6 0 17 8 14 13"
).split()


def superclass(number: int) -> tuple[int, ...]:
    """The fine classes of a CIFAR-100 superclass."""
    return tuple(fine for fine, coarse in enumerate(COARSE) if int(coarse) == number)


CIFAR10 = "CIFAR-10: small photographs of ten kinds of animals and vehicles"
FASHION = "Fashion-MNIST: grey pictures of clothing"
ESC50 = {
    "animals": "animal sounds",
    "nature": "natural soundscapes and water",
    "human": "human sounds that are not speech",
    "domestic": "sounds inside of a home",
    "urban": "sounds outdoors in a city",
}

_fashion = Recipe(
    "fashion-rotations",
    "fashion",
    Pictures(
        ModelConfig("compact", outputs=4, widths=(32, 64, 128), mean=(0.5,) * 3, std=(0.35,) * 3),
        "transform_class",
        size=28,
        grey=True,
        crop=2,
    ),
    Rotations(per_draw="all"),
    "cross_entropy",
    epochs=6,
    ema=0.99,
    summary=FASHION,
)
_cifar10_rotations = Recipe(
    "cifar10-rotations",
    "cifar10",
    Pictures(ModelConfig("compact", outputs=4, widths=(64, 256, 256)), "transform_class", crop=3),
    SharpRotations(),
    "cross_entropy_and_familiarity",
    epochs=36,
    ema=0.998,
    summary=CIFAR10,
)
_cifar10_pretrained = replace(
    _cifar10_rotations,
    name="cifar10-rotations-pretrained",
    shows=Pictures(
        ModelConfig("efficientnet-lite0", outputs=4, mean=pretrained.MEAN, std=pretrained.STD),
        "transform_class",
        size=64,  # at 32 px its five strides leave a single position
        crop=6,
    ),
    epochs=3,
    learning_rate=0.02,
    weight_decay=1e-5,
)
_narrow_rotations = replace(
    _cifar10_rotations,
    name="cifar10-rotations-narrow",
    shows=Pictures(ModelConfig("compact", outputs=4, widths=(32, 128, 256)), "transform_class", crop=3),
    transforms=Rotations(per_draw="all"),
    epochs=18,
)
_cifar10_projective = replace(
    _narrow_rotations,
    name="cifar10-projective",
    shows=Pictures(
        ModelConfig("compact", outputs=8, widths=(64, 256, 256), variance=True),
        "transform_parameters",
        crop=3,
        start_from="checkpoints/cifar10-rotations",
        bfloat16=True,
    ),
    transforms=Projective(),
    base_ncm="log_parameter_error",
    epochs=10,
    optimizer="adam",  # the regression diverges under SGD at rates that learn anything
    learning_rate=1e-3,
    weight_decay=0.0,
)
_cifar10_invariance = replace(
    _cifar10_rotations,
    name="cifar10-invariance",
    shows=Pictures(
        ModelConfig("compact", outputs=10, widths=(64, 256, 256)), "label", crop=3, transformed=0.5
    ),
    transforms=SmallAffine(),
    base_ncm="invariance",
    epochs=14,
)
_cifar10_joint = replace(
    _cifar10_rotations,
    name="cifar10-joint",
    shows=Pictures(
        ModelConfig("compact", outputs=4 + 10, widths=(64, 256, 256)),
        "transform_and_label",
        crop=3,
        transformed=0.5,
        start_from="checkpoints/cifar10-invariance",
        feature_temperature=0.1,
        bfloat16=True,
    ),
    transforms=SharpRotations(per_draw="one"),
    base_ncm="turn_and_label",
    epochs=18,
    learning_rate=0.1,
    seed=7,  # a calibration set of its own
)
_cifar10_joint_wide = replace(
    _cifar10_joint,
    name="cifar10-joint-wide",
    shows=replace(
        _cifar10_joint.shows,
        model=ModelConfig("compact", outputs=4 + 10, widths=(64, 256, 384)),
        crop=4,
        cutout=8,
        transformed=0.25,
        start_from="",
        split_of="checkpoints/cifar10-invariance",  # so that it can be merged with it
    ),
    base_ncm="turn_and_mirrored_label",
    epochs=34,
    learning_rate=0.2,
)
# More channels and fewer epochs: what is accuracy worth? (docs/evidence.md)
_cifar10_joint_large = replace(
    _cifar10_joint_wide,
    name="cifar10-joint-large",
    shows=replace(
        _cifar10_joint_wide.shows,
        model=ModelConfig("compact", outputs=4 + 10, widths=(128, 384, 384)),
        alternate=True,
    ),
    epochs=24,
)
_cifar10_evidence = replace(
    _cifar10_invariance,
    name="cifar10-evidence",
    shows=Pictures(
        ModelConfig("compact", outputs=10, widths=(64, 256, 384)),
        "label",
        alternate=True,
        crop=3,
        cutout=8,
        transformed=0.0,
        split_of="checkpoints/cifar10-invariance",  # so that it can be merged with the joint ones
        feature_temperature=0.1,
        identity=True,
        bfloat16=True,
    ),
    transforms=Views(),
    base_ncm="evidence",
    epochs=30,
    batch=500,
    learning_rate=0.5,
    norm_bias_rate=16.0,
    weight_decay=1.3e-3,
    ema=0.99,
    seed=7,  # the calibration set of the joint ones
)
_cifar10_turn_evidence = replace(
    _cifar10_evidence,
    name="cifar10-turn-evidence",
    shows=replace(
        _cifar10_evidence.shows,
        model=ModelConfig("compact", outputs=4 + 10, widths=(64, 256, 384)),
        task="transform_and_label",
        mixed=0.25,
        transformed=0.25,
        upright_labels=True,
    ),
    transforms=SharpRotations(per_draw="one"),
    base_ncm="turn_and_label",
    epochs=24,
)
# As fast as those two, with classes of turned copies too, as cifar10-joint-wide has them: what are these worth?
_cifar10_joint_fast = replace(
    _cifar10_evidence,
    name="cifar10-joint-fast",
    shows=replace(
        _cifar10_evidence.shows,
        model=ModelConfig("compact", outputs=4 + 10, widths=(64, 256, 384)),
        task="transform_and_label",
        transformed=0.25,
    ),
    transforms=SharpRotations(per_draw="one"),
    base_ncm="turn_and_mirrored_label",
)
# A classifier that starts from ImageNet's weights (docs/pretrained.md): the network of cifar10-pretrained.
_cifar10_imagenet = replace(
    _cifar10_evidence,
    name="cifar10-imagenet",
    shows=replace(
        _cifar10_evidence.shows,
        model=ModelConfig(
            "efficientnet-lite0", outputs=10, mean=pretrained.MEAN, std=pretrained.STD, enlarge=3
        ),  # at 32 px its five strides leave a single position
        feature_temperature=0.0,
        identity=False,
        bfloat16=False,
    ),
    epochs=8,
    batch=32,  # on a processor, larger ones no longer fit into its caches and take twice as long per picture
    learning_rate=0.015,
    norm_bias_rate=1.0,
    weight_decay=5e-4,
    ema=0.999,
)
# The rotation network, wider and in bfloat16. On the schedule of cifar10-evidence (rate 0.5, identity) turns stay at chance.
_cifar10_rotations_wide = replace(
    _cifar10_rotations,
    name="cifar10-rotations-wide",
    shows=Pictures(
        ModelConfig("compact", outputs=4, widths=(64, 256, 384)),
        "transform_class",
        alternate=True,
        crop=3,
        split_of="checkpoints/cifar10-rotations",
        bfloat16=True,
    ),
    transforms=SharpRotations(per_draw="one"),
    epochs=38,
)
# Victims of attacks: plain classifiers. Around each stands a detector as around cifar10-invariance, and it has the same split.
_cifar10_densenet = replace(
    _cifar10_invariance,
    name="cifar10-densenet",
    shows=Pictures(
        ModelConfig("densenet-compact", outputs=10), "label", crop=2, transformed=0.0, bfloat16=True
    ),
    epochs=12,
    batch=128,
    learning_rate=0.15,
)


def _paper_victim(backbone: Literal["resnet34", "densenet100"]) -> Recipe[Pictures]:
    """Trained as the networks' own papers do: SGD, batches of 64, 300 epochs."""
    return replace(
        _cifar10_densenet,
        name=f"paper-cifar10-{backbone}",
        shows=Pictures(ModelConfig(backbone, outputs=10), "label", crop=4, transformed=0.0),
        epochs=300,
        batch=64,
        learning_rate=0.1,
        weight_decay=1e-4,
        ema=0.0,
    )


_paper_projective = Recipe(
    "paper-cifar10-projective",
    "cifar10",
    Pictures(
        ModelConfig("resnet34", outputs=8, pair=True, variance=True), "transform_parameters", flip=False
    ),
    Projective(),
    "parameter_error",
    epochs=2600,
    batch=100,
    learning_rate=1e-3,
    head_learning_rate=1e-2,
    schedule="constant",
    summary=CIFAR10,
)


def _one_class(name: str, dataset: str, model: ModelConfig, classes: tuple[int, ...]) -> Recipe[Pictures]:
    return Recipe(
        name,
        dataset,
        Pictures(model, "transform_class", classes, flip=False, all_ranges=True, triplet=3.0),
        Rotations(),
        "cross_entropy",
        epochs=200,
        batch=50,
        optimizer="adam",
        learning_rate=1e-3,
        schedule="constant",
        summary="CIFAR-10: small photographs of one class"
        if dataset == "cifar10"
        else "CIFAR-100: small photographs of one superclass",
    )


CIFAR10_KINDS = ("airplanes", "cars", "birds", "cats", "deer", "dogs", "frogs", "horses", "ships", "trucks")
CIFAR100_KINDS = {9: "buildings", 10: "landscapes", 13: "invertebrates", 17: "trees"}
"""Superclasses of CIFAR-100 that stand in our table."""


def _compact_one_class(name: str, dataset: str, classes: tuple[int, ...], summary: str) -> Recipe[Pictures]:
    """Minutes on two cores: smaller pictures and a narrow network (docs/one-class.md)."""
    return Recipe(
        name,
        dataset,
        Pictures(
            ModelConfig("compact", outputs=4, widths=(16, 64, 128)),
            "transform_class",
            classes,
            size=24,
            crop=2,
            all_ranges=True,
            bfloat16=True,
        ),
        Rotations("all"),
        "cross_entropy",
        epochs=12,
        batch=32,
        learning_rate=0.1,
        ema=0.99,
        summary=summary,
    )


_esc50_animals = Recipe(
    "esc50-animals",
    "esc50",
    Sounds(LogMel(sample_rate=16_000), "animals", masks_from=20, mixup=0.3),  # a clip of 5 s is one block
    SpecAugment(),
    "soft_disagreement",
    epochs=80,
    batch=32,
    optimizer="adamw",
    learning_rate=2e-3,
    weight_decay=1e-4,
    ema=0.99,
)
_spoken_digits = replace(
    _esc50_animals,
    name="spoken-digits",
    dataset="spokendigits",
    shows=Sounds(  # short words need short frames: a block is one second
        LogMel(sample_rate=16_000, fft=512, hop=128), masks_from=4, calibration_points=1000
    ),
    epochs=12,
    summary="Spoken English digits, made with espeak-ng",
)


def _fsdnoisy18k(number: int) -> Recipe[Sounds]:
    """App. C.2, for machines that have that dataset."""
    return Recipe(
        f"paper-fsdnoisy18k-set{number}",
        "fsdnoisy18k",
        Sounds(LogMel(), str(number), PAPER_WIDTHS, stride=1, shift=False),
        PAPER_MASKS,
        "invariance",
        epochs=30,
        batch=128,
        optimizer="adamw",
        learning_rate=5e-4,
        schedule="steps",
        weight_decay=0.0,
        summary=f"FSDnoisy18k: set {number}",
    )


_all: list[Recipe[Any]] = [
    _fashion,
    replace(
        _fashion, name="fashion-quick", dataset="fashionmini", epochs=8, summary=f"{FASHION} (a small part)"
    ),
    _cifar10_rotations,
    _cifar10_pretrained,
    _narrow_rotations,
    _cifar10_projective,
    _cifar10_invariance,
    _cifar10_joint,
    _cifar10_joint_wide,
    _cifar10_joint_large,
    _cifar10_evidence,
    _cifar10_turn_evidence,
    _cifar10_joint_fast,
    _cifar10_imagenet,
    _cifar10_rotations_wide,
    _cifar10_densenet,
    _paper_victim("resnet34"),
    _paper_victim("densenet100"),
    _paper_projective,
    replace(
        _paper_projective,
        name="paper-svhn-projective",
        dataset="svhn",
        summary="SVHN: house numbers on photographs",
    ),
    *(
        _one_class(
            f"paper-cifar10-one-class-{c}",
            "cifar10",
            ModelConfig("wrn-40-2", outputs=4, pair=True, hidden=256),
            (c,),
        )
        for c in range(10)
    ),
    *(
        _one_class(
            f"paper-cifar100-superclass-{c}",
            "cifar100",
            ModelConfig("resnet18", outputs=4, pair=True, hidden=512),
            superclass(c),
        )
        for c in range(20)
    ),
    *(
        _compact_one_class(f"cifar10-{kind}", "cifar10", (c,), f"CIFAR-10: small photographs of {kind}")
        for c, kind in enumerate(CIFAR10_KINDS)
    ),
    *(
        _compact_one_class(
            f"cifar100-{kind}", "cifar100", superclass(number), f"CIFAR-100: small photographs of {kind}"
        )
        for number, kind in CIFAR100_KINDS.items()
    ),
    *(
        replace(
            _esc50_animals,
            name=f"esc50-{category}",
            shows=replace(_esc50_animals.shows, part=category),
            summary=f"ESC-50: {ESC50[category]}",
        )
        for category in ESC50_CATEGORIES
    ),
    _spoken_digits,
    *(_fsdnoisy18k(number) for number in range(4)),
]
RECIPES: dict[str, Recipe[Any]] = {recipe.name: recipe for recipe in _all}


def get_recipe(name: str) -> Recipe[Any]:
    if name not in RECIPES:
        families = [
            list(group) for _, group in groupby(RECIPES, key=lambda known: re.sub(r"\d+$", "", known))
        ]
        known = [f"{names[0]}..{len(names) - 1}" if len(names) > 1 else names[0] for names in families]
        raise SettingError(f"No recipe is called {name!r}. Expected one of {', '.join(known)}.")
    return RECIPES[name]
