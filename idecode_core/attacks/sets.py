"""Attacked sets for the experiment: test pictures that a victim names right, attacked, outside of the repository.

`runs/attacked/<victim>/<set>.npz`, a set being an attack or `pgd-detector@<detector>`: places in the test set, attacked pictures as
float32, the victim's logits before and after. Every set of a victim begins with the same pictures. A stopped run goes on where it was.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.attacks.attacked import Attacked
from idecode_core.attacks.classic import attack
from idecode_core.attacks.kinds import get_attack
from idecode_core.attacks.on_detector import attack_detector
from idecode_core.attacks.victim import Victim
from idecode_core.detector import Detector
from idecode_core.errors import DataError
from idecode_core.files import write_npz
from idecode_core.files.read import DATASET_BYTES, read_arrays
from idecode_core.image.sets import ImageSet

FOLDER = Path("runs") / "attacked"
SEED = 0  # of the choice of pictures
PIECE = 64  # pictures that are attacked between two writes
ARRAYS = ("indices", "attacked", "before", "after", "strength")
Indices = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]
Report = Callable[[int], None]
"""Called with the number of pictures that are attacked and stored."""


@dataclass(frozen=True, eq=False)
class AttackedSet:
    """What was attacked, and where those pictures stand in the test set."""

    indices: Indices  # (N,)
    result: Attacked


def set_name(name: str, detector: str | None = None) -> str:
    return name if detector is None else f"{name}@{detector}"


def set_path(victim: str, name: str, root: Path = FOLDER) -> Path:
    return root / victim / f"{name}.npz"


def to_tensor(x: NDArray[np.uint8]) -> Tensor:
    """8-bit pictures (N, h, w, 3) -> floats in [0, 1] (N, 3, h, w)."""
    return torch.from_numpy(x).permute(0, 3, 1, 2).float() / 255


def named_right(victim: Victim, images: ImageSet, points: int) -> Indices:
    """The first `points` pictures, in one random order of the set, that the victim names right."""
    order = np.random.default_rng(SEED).permutation(len(images))
    found: list[int] = []
    for start in range(0, len(order), 4 * PIECE):
        part = order[start : start + 4 * PIECE]
        said = victim.says(to_tensor(images.x[part])).argmax(1).numpy()
        found += part[said == images.y[part]].tolist()
        if len(found) >= points:
            break
    return np.array(found[:points], np.int64)


def make_attacked_set(
    victim: Victim,
    images: ImageSet,
    name: str,
    points: int,
    *,
    detector: Detector | None = None,
    root: Path = FOLDER,
    report: Report | None = None,
) -> AttackedSet:
    """Attack pictures until `points` are stored; those that are stored already are left alone."""
    kind = get_attack(name)
    path = set_path(victim.name, set_name(name, detector.name if detector is not None else None), root)
    chosen = named_right(victim, images, points)
    stored = _stored(path, victim, images, chosen)
    while len(stored["indices"]) < len(chosen):
        start = len(stored["indices"])
        part = chosen[start : start + PIECE]
        x, y = to_tensor(images.x[part]), torch.from_numpy(images.y[part])
        if detector is not None:
            made = attack_detector(victim, detector, x, y, n=1)  # one draw per step are many in all
        else:
            made = attack(victim, x, y, kind.name)
        new = {
            "indices": part,
            "attacked": made.attacked.numpy(),
            "before": made.before.numpy(),
            "after": made.after.numpy(),
        }
        stored = {key: np.concatenate([stored[key], value]) for key, value in new.items()}
        stored["strength"] = np.array(made.strength)
        write_npz(path, stored)
        if report is not None:
            report(len(stored["indices"]))
    return _as_set(stored, name, victim.name, victim.classes, images)


def read_attacked_set(
    victim: str, name: str, classes: tuple[str, ...], images: ImageSet, root: Path = FOLDER
) -> AttackedSet:
    """A stored set; `images` is the test set that its pictures come from."""
    return _as_set(_read(set_path(victim, name, root)), name.partition("@")[0], victim, classes, images)


def _read(path: Path) -> Arrays:
    return read_arrays(
        path,
        ARRAYS,
        what="a set of attacked pictures",
        error=DataError,
        hint="Make it with `python -m idecode_core attack-sets`.",
        most_bytes=DATASET_BYTES,
    )


def _stored(path: Path, victim: Victim, images: ImageSet, chosen: Indices) -> Arrays:
    """What is there of this victim, else nothing: a victim that was trained again says something else."""
    empty: Arrays = {
        "indices": np.empty(0, np.int64),
        "attacked": np.empty((0, 3, victim.size, victim.size), np.float32),
        "before": np.empty((0, len(victim.classes)), np.float32),
        "after": np.empty((0, len(victim.classes)), np.float32),
        "strength": np.array(0.0),
    }
    try:
        found = _read(path)
    except DataError:
        return empty
    first = chosen[: min(8, len(found["indices"]))]
    same = np.array_equal(found["indices"][: len(chosen)], chosen[: len(found["indices"])])
    if not same or not np.allclose(
        victim.says(to_tensor(images.x[first])), found["before"][: len(first)], atol=1e-3
    ):
        return empty
    return found


def _as_set(
    arrays: Arrays, name: str, victim: str, classes: tuple[str, ...], images: ImageSet
) -> AttackedSet:
    indices = arrays["indices"].astype(np.int64)
    attacked, before, after = (torch.from_numpy(arrays[key]) for key in ("attacked", "before", "after"))
    labels = torch.from_numpy(images.y[indices])
    clean = to_tensor(images.x[indices])
    strength = float(arrays["strength"])
    return AttackedSet(
        indices, Attacked(name, strength, victim, classes, clean, attacked, labels, before, after)
    )
