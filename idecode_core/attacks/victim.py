"""Victims: classifiers that attacks are run against. A detector whose network names classes brings one along."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from idecode_core.detector import Detector
from idecode_core.errors import InputError, SettingError
from idecode_core.folder.detector import load_detector
from idecode_core.folder.listing import list_detectors
from idecode_core.image.scorer import ImageScorer
from idecode_core.models import Equivariant
from idecode_core.scorers.call_network import UserModel

TOGETHER = 256  # pictures that go through the network at once, where no gradient is asked for


@dataclass(frozen=True, eq=False)
class Victim:
    """A classifier of pictures of one size, with the names of its classes."""

    name: str
    model: Equivariant | UserModel
    classes: tuple[str, ...]
    size: int
    device: torch.device

    @property
    def dense(self) -> bool:
        """Whether it is a DenseNet: the paper attacks those with another strength of DeepFool."""
        return isinstance(self.model, Equivariant) and self.model.config.backbone.startswith("densenet")

    def logits(self, x: Tensor) -> Tensor:
        """x (batch, 3, size, size) in [0, 1] on the device -> (batch, classes); gradients flow where x asks for them."""
        if isinstance(self.model, UserModel):
            return self.model(x)[0].float()
        return self.model.decode(None, self.model.encode(x)[:, None])[:, 0]

    def all_logits(self, x: Tensor) -> Tensor:
        """`logits` of any number of pictures from anywhere, without gradients, on the CPU."""
        with torch.no_grad():
            return torch.cat([self.logits(part.to(self.device)).cpu() for part in x.split(TOGETHER)])

    @staticmethod
    def from_detector(detector: Detector) -> "Victim":
        """The classifier inside of a detector of pictures; a copy of its network, whose weights stay as they are."""
        scorer = detector.scorer
        classes = getattr(scorer, "classes", ())
        if not isinstance(scorer, ImageScorer) or not classes:
            others = ", ".join(victims()) or "none here"
            raise SettingError(
                f"The network of {detector.name} names no classes, so nothing can be passed off as another class: expected a "
                f"classifier of pictures, such as {others}."
            )
        model: Any = scorer.model
        if isinstance(model, UserModel):
            if model.is_function:
                raise SettingError(
                    f"The classifier of {detector.name} is a function without gradients, and these attacks follow gradients: "
                    "expected a torch.nn.Module. Make the detector around the network itself."
                )
            outputs = scorer.probe.shape[1]  # type: ignore[attr-defined]  # an UserScorer
        else:
            model, outputs = deepcopy(model), model.config.outputs
            model.requires_grad_(False).eval()
        if outputs != len(classes):
            raise SettingError(
                f"The network of {detector.name} answers with {outputs} numbers and has {len(classes)} names of classes: "
                "expected as many. Calibrate it again with all names."
            )
        return Victim(detector.name, model, tuple(classes), scorer.preprocessing.size, scorer.device)

    def checked(self, x: Any, y: Any) -> tuple[Tensor, Tensor]:
        """x as float32 (batch, 3, size, size) and y as int64 (batch,), or an InputError that says what does not fit."""
        x = torch.as_tensor(np.asarray(x) if not isinstance(x, Tensor) else x).detach().cpu()
        if x.ndim != 4 or x.shape[1] != 3 or not len(x):
            raise InputError(
                f"Expected pictures of shape (batch, 3, {self.size}, {self.size}), got {tuple(x.shape)}."
            )
        if x.shape[2:] != (self.size, self.size):
            raise InputError(
                f"{self.name} takes pictures of {self.size} x {self.size} pixels, got {x.shape[3]} x {x.shape[2]}. Bring them to "
                "its size first, or choose another victim."
            )
        if not x.is_floating_point() or not torch.isfinite(x).all() or x.min() < 0 or x.max() > 1:
            raise InputError("Expected pictures as floats from 0 to 1; divide 8-bit pictures by 255.")
        labels = torch.as_tensor(y).detach().cpu()
        whole = not labels.is_floating_point() and not labels.is_complex()
        if labels.shape != (len(x),) or not whole or labels.min() < 0 or labels.max() >= len(self.classes):
            raise InputError(
                f"Expected one class per picture, {len(x)} whole numbers from 0 to {len(self.classes) - 1}, got "
                f"{labels.dtype} of shape {tuple(labels.shape)}."
            )
        return x.float(), labels.long()


def victims() -> list[str]:
    """The detectors here whose networks name the classes of pictures, and answer with nothing else."""
    return [config.name for config in list_detectors() if _names_classes(config.scorer)]


def _names_classes(settings: Mapping[str, Any]) -> bool:
    classes = len(settings.get("classes", ()))
    return settings["kind"] == ImageScorer.kind and bool(0 < classes == settings["model"]["outputs"])


def load_victim(name: str, device: str | torch.device | None = None) -> Victim:
    """The classifier of a detector folder, by its name among those that come with the project or by its path."""
    return Victim.from_detector(load_detector(name, device))
