"""The attacks by name, and what the strength of each means. Defaults are the paper's (its settings for CIFAR-10).

What an attack has done: pictures before and after, what the victim says of each, and how large the change is.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.errors import SettingError
from idecode_core.image.read import Unrounded

BIM_STEP = 0.01  # the paper: 6 steps of 0.01
DEEPFOOL_STEPS = 5  # at most
CW_STEPS, CW_RATE = 100, 0.01  # Adam


@dataclass(frozen=True)
class AttackKind:
    """What there is to know of an attack before it is run."""

    name: str
    title: str
    how: str
    """How it works, in one sentence."""
    strength_means: str
    unit: str
    default: float
    """The paper's, on networks like ResNet."""
    highest: float
    dense_default: float | None = None
    """The paper's on DenseNets, where it differs."""
    slow: bool = False
    """Takes many passes through the network."""
    on_detector: bool = False
    """Run by `attack_detector`: it needs a detector beside the victim."""
    source: str = "The paper uses"
    """Where the default comes from, as the beginning of a sentence that it ends."""

    @property
    def axis(self) -> str:
        """The title of an axis of strengths."""
        share = "as a share " if self.unit.startswith("of ") else ""
        return f"Strength of {self.title}, {share}{self.unit.strip('()')}"

    def default_for(self, dense: bool) -> float:
        return self.dense_default if dense and self.dense_default is not None else self.default

    def check(self, strength: float) -> None:
        """SettingError unless this strength can be used."""
        if not 0 < strength <= self.highest:  # also refuses what is not a number
            nothing = " Strength 0 leaves every picture as it is." if strength == 0 else ""
            raise SettingError(
                f"The strength of {self.title} is {self.strength_means}: expected more than 0 and at most "
                f"{self.highest:g}, got {strength:g}.{nothing} {self.source} {self.default:g}."
            )


_kinds = (
    AttackKind(
        "fgsm",
        "FGSM",
        "One step along the sign of the gradient of the victim's loss (Goodfellow et al. 2015).",
        "how far every pixel value is moved",
        "of the pixel range",
        default=0.05,
        highest=0.5,
    ),
    AttackKind(
        "bim",
        "BIM",
        f"FGSM in small steps of {BIM_STEP:g}, with a new gradient before each (Kurakin et al. 2017).",
        "how far a pixel value may be moved in all",
        "of the pixel range",
        default=0.06,
        highest=0.5,
    ),
    AttackKind(
        "deepfool",
        "DeepFool",
        f"The shortest way over the nearest class border, as if borders were straight; at most {DEEPFOOL_STEPS} rounds "
        "(Moosavi-Dezfooli et al. 2016).",
        "how far beyond the border it goes, as a share of the way there",
        "of the way",
        default=0.18,
        highest=5.0,
        dense_default=0.6,
        slow=True,
    ),
    AttackKind(
        "cw",
        "CW-L2",
        f"Searches for the smallest change that fools the victim, {CW_STEPS} steps of Adam (Carlini and Wagner 2017).",
        "c, how much being fooled counts beside being close to the picture",
        "(c has no unit)",
        default=1.0,
        highest=1000.0,
        slow=True,
    ),
    AttackKind(
        "pgd-detector",
        "PGD on the detector",
        "Fools the victim and lowers the detector's score, by somebody who knows both (ours, after Bryniarski et al. 2022).",
        "how far a pixel value may be moved in all",
        "of the pixel range",
        default=0.05,  # the paper has no such attack
        highest=0.5,
        slow=True,
        on_detector=True,
        source="As far as the paper's FGSM goes is",
    ),
)
ATTACKS: dict[str, AttackKind] = {kind.name: kind for kind in _kinds}


def get_attack(name: str) -> AttackKind:
    if name not in ATTACKS:
        raise SettingError(f"No attack is called {name!r}; expected one of {', '.join(ATTACKS)}.")
    return ATTACKS[name]


Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Attacked:
    """A batch before and after. Floats, never rounded to 8 bits."""

    name: str
    strength: float
    victim: str
    classes: tuple[str, ...]
    clean: Tensor  # (batch, 3, size, size), float32 in [0, 1]
    attacked: Tensor  # the same shape
    labels: Tensor  # (batch,), int64
    before: Tensor  # (batch, classes): the victim's logits of clean
    after: Tensor  # (batch, classes): and of attacked

    @property
    def samples(self) -> Unrounded:
        """The attacked pictures as detectors take them, without rounding."""
        return Unrounded(self.attacked)

    @cached_property
    def right_before(self) -> Flags:
        return (self.before.argmax(1) == self.labels).numpy()

    @cached_property
    def success(self) -> Flags:
        """A sample counts when the clean picture was right and the attacked one is wrong. A picture that is all black is
        foolbox's word for failure."""
        pixels = self.attacked.flatten(1)
        usable = (pixels.isfinite().all(1) & (pixels != 0).any(1) & self.after.isfinite().all(1)).numpy()
        wrong_after = (self.after.argmax(1) != self.labels).numpy()
        successful: Flags = self.right_before & wrong_after & usable
        return successful

    @cached_property
    def l2(self) -> Floats:
        """Length of the change per picture, pixel values in [0, 1]."""
        length: Floats = np.linalg.norm((self.attacked - self.clean).flatten(1).double().numpy(), axis=1)
        return length

    @cached_property
    def linf(self) -> Floats:
        """The largest change of a pixel value per picture."""
        return (self.attacked - self.clean).flatten(1).abs().amax(1).double().numpy()

    def summary(self) -> str:
        """One or two sentences: how many were fooled, and by how large a change."""
        title, right, fooled = ATTACKS[self.name].title, int(self.right_before.sum()), int(self.success.sum())
        wrong = len(self.labels) - right
        if not right:
            return (
                f"{self.victim} already names {'the picture' if wrong == 1 else f'all {wrong} pictures'} wrong without an "
                "attack, so there is nothing to fool it with. Choose a picture that it names right."
            )
        said = (
            f"{title} at strength {self.strength:g} fools {self.victim} on {fooled} of {right} picture{'s' * (right > 1)} that "
            f"it named right"
        )
        if fooled:
            said += (
                f"; the change has a mean length (L2) of {self.l2[self.success].mean():.3g} and moves a pixel value by at most "
                f"{self.linf[self.success].mean():.3g} on average (Linf)."
            )
        else:
            said += ": the attack failed. Try a larger strength or another attack."
        return said + (
            f" {wrong} more {'were' if wrong > 1 else 'was'} wrong before any attack." if wrong else ""
        )


def set_name(name: str, detector: str | None = None) -> str:
    return name if detector is None else f"{name}@{detector}"


def to_tensor(x: NDArray[np.uint8]) -> Tensor:
    """8-bit pictures (N, h, w, 3) -> floats in [0, 1] (N, 3, h, w)."""
    return torch.from_numpy(x).permute(0, 3, 1, 2).float() / 255
