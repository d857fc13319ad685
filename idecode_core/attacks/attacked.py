"""What an attack has done: pictures before and after, what the victim says of each, and how large the change is."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.attacks.kinds import ATTACKS
from idecode_core.image.unrounded import Unrounded

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
        found: Flags = self.right_before & wrong_after & usable
        return found

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
