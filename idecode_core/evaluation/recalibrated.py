"""What calibrating again costs: it repairs false alarms, not detection.

Files that are strange to the model have large scores. As a calibration set they raise the threshold for everything, so
that what the parent caught may pass. The model has learned nothing about what belongs now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from idecode_core.conformal import FloatArray, flagging_rank, k_needed
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge

if TYPE_CHECKING:
    from idecode_core.scorer import Samples

PER_SET = 20  # samples of each bundled set: a glance, not a benchmark
PICTURES = {
    "digits": "digits",
    "photos": "photographs",
    "textures": "textures",
    "fashion": "clothing",
    "cifar10": "CIFAR-10",
}
SOUNDS = {"digit": "spoken digits", "other": "made sounds", "recorded": "recordings"}


@dataclass(frozen=True)
class Catch:
    """How many points of one set were flagged by the parent, and are flagged by the new detector."""

    label: str
    total: int
    before: int
    after: int


@dataclass(frozen=True)
class Lost:
    """What a new calibration costs, over all sets."""

    epsilon: float
    k: int
    catches: tuple[Catch, ...]

    @property
    def before(self) -> float:
        """The share that the parent catches."""
        return sum(catch.before for catch in self.catches) / max(
            sum(catch.total for catch in self.catches), 1
        )

    @property
    def after(self) -> float:
        """The share that the new detector catches."""
        return sum(catch.after for catch in self.catches) / max(sum(catch.total for catch in self.catches), 1)

    @property
    def blind(self) -> bool:
        """Hardly more is caught than is flagged of what belongs."""
        return bool(self.catches) and self.after <= 2 * self.epsilon

    def reading(self) -> str:
        """One or two sentences."""
        shares = f"{self.after:.0%} of these samples, the parent {self.before:.0%}"
        if flagging_rank(self.k, self.epsilon) == 0:
            return (
                f"It cannot flag anything: with {self.k:,} calibration points epsilon = {self.epsilon:g} is too small. "
                f"Bring {k_needed(self.epsilon):,} files or more, or allow a larger epsilon."
            )
        if self.blind:
            was = (
                "The parent was no better."
                if self.before <= 2 * self.epsilon
                else "What you brought is strange to this model."
            )
            return (
                f"This detector is blind: it catches {shares}, and of what belongs it may flag {self.epsilon:.0%}. {was} "
                "Train a detector on your own files instead."
            )
        if self.after < self.before / 2:
            return f"More than half of the detection is lost: it catches {shares}."
        return f"It still detects: it catches {shares}."


def what_is_lost(
    parent: Calibration,
    own: Calibration,
    score_vectors: Mapping[str, FloatArray],
    *,
    n: int,
    epsilon: float,
    aggregate: str = "sum",
) -> Lost:
    """How many of each set, label -> V (batch, at least n), are flagged under the parent's calibration and under the new one."""
    catches = []
    for label, vectors in score_vectors.items():
        before, after = (
            int(judge(calibration, vectors, n=n, epsilon=epsilon, aggregate=aggregate).is_ood.sum())
            for calibration in (parent, own)
        )
        catches.append(Catch(label, len(vectors), before, after))
    return Lost(epsilon, own.k, tuple(catches))


def bundled_sets(modality: str, dataset: str = "", per_set: int = PER_SET) -> "dict[str, Samples]":
    """Label -> some samples of each set that comes with the project, all but those of the detector's own dataset."""
    return _sounds(dataset) if modality == "audio" else _pictures(dataset, per_set)


def _pictures(dataset: str, per_set: int) -> "dict[str, Samples]":
    from idecode_core.image.sets import dataset_and_class, load_images

    found: dict[str, Samples] = {}
    own, only = dataset_and_class(dataset)
    for name, label in PICTURES.items():
        if name != own or only is not None:
            images = load_images(f"{name}-sample")
            x = images.x[images.y != only] if name == own else images.x
            found[label] = x[_spread(len(x), per_set)]
    return found


def _sounds(dataset: str) -> "dict[str, Samples]":
    from idecode_core.audio.gallery import gallery_sounds
    from idecode_core.audio.read import read_sound

    found: dict[str, list[Any]] = {}
    for sound in gallery_sounds():
        kind = sound.path.stem.partition("-")[0]
        if kind != "digit" or dataset != "spokendigits":
            found.setdefault(SOUNDS.get(kind, kind), []).append(
                read_sound(sound.path.read_bytes(), name=sound.name)
            )
    return dict(found)


def _spread(total: int, wanted: int) -> Sequence[int]:
    """Places all over a set, so that sorted classes are all there.

    >>> _spread(10, 3)
    [0, 4, 9]
    """
    return [int(i) for i in np.linspace(0, total - 1, min(wanted, total))]
