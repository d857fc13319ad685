"""Results of the slow attacks on a few bundled pictures, so that a page can show them at once.

`embedded/attacked-gallery.npz`, written by `python -m tools.make_attack_gallery`: per victim and attack the attacked pictures as
float32. What the victim says of them is asked again, so it is true of the victim that is here.
"""

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.attacks.kinds import Attacked, get_attack, set_name, to_tensor
from idecode_core.attacks.victim import Victim
from idecode_core.data import EMBEDDED
from idecode_core.errors import DataError
from idecode_core.files.read import read_arrays
from idecode_core.image.sets import load_images

SAMPLE = "cifar10-sample"
PLACES = (0, 12, 24, 36, 48, 60, 72, 84)
"""Of the gallery's pictures in that set: the first airplane, car, bird, cat, deer, dog, frog and horse."""
PATH = EMBEDDED / "attacked-gallery.npz"
SEED = 0
"""Of the draws of the attack on a detector."""


def gallery_pictures() -> tuple[Tensor, Tensor]:
    """The gallery before any attack: (8, 3, 32, 32) in [0, 1], and the classes (8,)."""
    images = load_images(SAMPLE).take(np.array(PLACES))
    return to_tensor(images.x), torch.from_numpy(images.y)


def array_name(victim: str, name: str, detector: str | None = None) -> str:
    return f"{victim}.{set_name(name, detector)}"


def from_gallery(
    victim: Victim,
    x: Tensor,
    y: int,
    name: str,
    strength: float,
    *,
    detector: str | None = None,
    seed: int = SEED,
) -> Attacked | None:
    """What `attack` or `attack_detector` gives for one picture x (1, 3, size, size), where the gallery has it; else None."""
    if strength != get_attack(name).default_for(victim.dense) or (detector is not None and seed != SEED):
        return None
    stored = _arrays().get(array_name(victim.name, name, detector))
    clean, labels = gallery_pictures()
    places = [i for i in range(len(clean)) if torch.equal(clean[i : i + 1], x) and int(labels[i]) == y]
    if stored is None or not places:
        return None
    attacked = torch.from_numpy(stored[places[0]][None])
    before, after = victim.all_logits(x), victim.all_logits(attacked)
    return Attacked(
        name, strength, victim.name, victim.classes, x, attacked, labels[places[:1]], before, after
    )


@cache
def _arrays() -> dict[str, NDArray[np.float32]]:
    return read_arrays(
        PATH, what="a gallery of attacked pictures", error=DataError, hint="Install the program again."
    )
