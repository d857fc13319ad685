"""A scorer as plain settings (JSON) and tensors, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from idecode_core.audio_scoring import AudioScorer
from idecode_core.errors import CheckpointError
from idecode_core.features import LogMel
from idecode_core.images import Preprocessing
from idecode_core.merged import MergedScorer
from idecode_core.models import ModelConfig, blank_model
from idecode_core.models.vgg import VGGConfig, blank_vgg
from idecode_core.scoring import ImageScorer, Scorer
from idecode_core.transforms import (
    Projective,
    Rotations,
    SharpRotations,
    SmallAffine,
    SpecAugment,
    TransformSet,
)

Settings = dict[str, Any]
TRANSFORM_SETS: dict[str, type] = {
    "rotations": Rotations,
    "sharp_rotations": SharpRotations,
    "projective": Projective,
    "small_affine": SmallAffine,
    "specaugment": SpecAugment,
}


def transform_settings(transforms: TransformSet) -> Settings:
    for name, kind in TRANSFORM_SETS.items():
        if type(transforms) is kind:
            return {"name": name, **asdict(transforms)}  # type: ignore[call-overload]
    raise CheckpointError(
        f"Transforms of type {type(transforms).__name__} cannot be saved: expected one of {', '.join(TRANSFORM_SETS)}. "
        f"Add the class to TRANSFORM_SETS."
    )


def build_transforms(settings: Mapping[str, Any]) -> TransformSet:
    arguments = dict(settings)
    name = arguments.pop("name")
    if name not in TRANSFORM_SETS:
        raise CheckpointError(
            f"Unknown transform set {name!r} in config.json: expected one of {', '.join(TRANSFORM_SETS)}. Update this program."
        )
    transforms: TransformSet = TRANSFORM_SETS[name](**arguments)
    return transforms


def scorer_settings(scorer: Scorer) -> Settings:
    """Everything but the tensors; JSON-ready."""
    if isinstance(scorer, ImageScorer):
        return {
            "kind": "image",
            "model": asdict(scorer.model.config),
            "transforms": transform_settings(scorer.transforms),
            "base_ncm": scorer.base_ncm,
            "preprocessing": asdict(scorer.preprocessing),
            "classes": list(scorer.classes),
        }
    if isinstance(scorer, AudioScorer):
        return {
            "kind": "audio",
            "model": asdict(scorer.model.config),
            "transforms": transform_settings(scorer.transforms),
            "base_ncm": scorer.base_ncm,
            "features": asdict(scorer.features),
            "classes": list(scorer.classes),
        }
    if isinstance(scorer, MergedScorer):
        return {
            "kind": "merged",
            "names": list(scorer.names),
            "weights": list(scorer.weights),
            "members": [scorer_settings(member) for member in scorer.members],
        }
    raise CheckpointError(
        f"A scorer of type {type(scorer).__name__} cannot be saved: expected an image, audio or merged scorer."
    )


def scorer_tensors(scorer: Scorer) -> dict[str, Tensor]:
    """Weights, and for a merged scorer the reference scores of its members."""
    if isinstance(scorer, ImageScorer | AudioScorer):
        return scorer.model.state_dict()
    if isinstance(scorer, MergedScorer):
        tensors: dict[str, Tensor] = {}
        for i, (member, reference) in enumerate(zip(scorer.members, scorer.references, strict=True)):
            tensors |= {f"member{i}.{name}": value for name, value in scorer_tensors(member).items()}
            tensors[f"reference{i}"] = torch.from_numpy(np.ascontiguousarray(reference))
        return tensors
    raise CheckpointError(f"A scorer of type {type(scorer).__name__} has no tensors that could be saved.")


def build_scorer(settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> Scorer:
    """The inverse of `scorer_settings` and `scorer_tensors`."""
    if settings["kind"] == "image":
        return build_image_scorer(settings, tensors, device)
    if settings["kind"] == "audio":
        return build_audio_scorer(settings, tensors, device)
    if settings["kind"] == "merged":
        members, references = [], []
        for i, member in enumerate(settings["members"]):
            prefix = f"member{i}."
            own = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
            members.append(build_image_scorer(member, own, device))
            references.append(tensors[f"reference{i}"].double().numpy())
        return MergedScorer(
            tuple(members),
            tuple(settings["names"]),
            tuple(references),
            tuple(float(w) for w in settings["weights"]),
        )
    raise CheckpointError(f"Unknown kind of scorer {settings['kind']!r} in config.json; update this program.")


def build_image_scorer(
    settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
) -> ImageScorer:
    arguments: Settings = {
        key: tuple(value) if isinstance(value, list) else value for key, value in settings["model"].items()
    }
    model = blank_model(ModelConfig(**arguments))
    model.load_state_dict(tensors)
    return ImageScorer(
        model,
        build_transforms(settings["transforms"]),
        settings["base_ncm"],
        Preprocessing(**settings["preprocessing"]),
        device,
        tuple(settings["classes"]),
    )


def build_audio_scorer(
    settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
) -> AudioScorer:
    model = blank_vgg(VGGConfig(**{**settings["model"], "widths": tuple(settings["model"]["widths"])}))
    model.load_state_dict(tensors)
    transforms = build_transforms(settings["transforms"])
    if not isinstance(transforms, SpecAugment):
        raise CheckpointError(
            f"config.json names the transforms {settings['transforms']['name']!r} for sounds: expected 'specaugment'. Use "
            f"the folder as it was saved."
        )
    return AudioScorer(
        model,
        transforms,
        settings["base_ncm"],
        LogMel(**settings["features"]),
        device,
        tuple(settings["classes"]),
    )
