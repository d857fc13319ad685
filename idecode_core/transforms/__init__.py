"""Transform sets G, each with its distribution Q_G, and how they are written into a detector's settings."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from idecode_core.errors import CheckpointError
from idecode_core.transforms.affine import Nudges, SmallAffine, Views, Windows
from idecode_core.transforms.base import TransformSet
from idecode_core.transforms.projective import Projective
from idecode_core.transforms.rotations import Rotations, SharpRotations
from idecode_core.transforms.specaugment import SpecAugment

TRANSFORM_SETS: dict[str, type] = {
    "rotations": Rotations,
    "sharp_rotations": SharpRotations,
    "projective": Projective,
    "small_affine": SmallAffine,
    "views": Views,
    "windows": Windows,
    "nudges": Nudges,
    "specaugment": SpecAugment,
}


LARGEST = 1000
"""No number in the settings of a transform set is larger: masks, frames, degrees, shares."""


def transform_settings(transforms: TransformSet) -> dict[str, Any]:
    """G as plain values, with its name."""
    for name, kind in TRANSFORM_SETS.items():
        if type(transforms) is kind:
            return {"name": name, **asdict(transforms)}  # type: ignore[call-overload]
    raise CheckpointError(
        f"Transforms of type {type(transforms).__name__} cannot be saved: expected one of {', '.join(TRANSFORM_SETS)}. "
        f"Add the class to TRANSFORM_SETS."
    )


def build_transforms(settings: Mapping[str, Any]) -> TransformSet:
    """The inverse of `transform_settings`."""
    arguments = dict(settings)
    name = arguments.pop("name")
    if name not in TRANSFORM_SETS:
        raise CheckpointError(
            f"Unknown transform set {name!r} in config.json: expected one of {', '.join(TRANSFORM_SETS)}. Update this program."
        )
    check_ranges(name, arguments)
    transforms: TransformSet = TRANSFORM_SETS[name](**arguments)
    return transforms


def check_ranges(name: str, arguments: Mapping[str, Any]) -> None:
    """CheckpointError unless each setting has the type of its default and a size that a machine can bear."""
    for field in fields(TRANSFORM_SETS[name]):
        value = arguments.get(field.name, field.default)
        number = isinstance(field.default, int | float)
        sound = (
            type(value) in (int, float)
            if isinstance(field.default, float)
            else type(value) is type(field.default)
        )
        if sound and number:
            sound = 0 <= value <= LARGEST and (field.name != "variants" or value == field.default)
        if not sound:
            raise CheckpointError(
                f"config.json says {field.name} = {value!r:.40} for the transforms {name}: expected a value like "
                f"{field.default!r}, at most {LARGEST}. Use the folder as it was saved."
            )


__all__ = [
    "TRANSFORM_SETS",
    "Nudges",
    "Projective",
    "Rotations",
    "SharpRotations",
    "SmallAffine",
    "SpecAugment",
    "TransformSet",
    "Views",
    "Windows",
    "build_transforms",
    "transform_settings",
]
