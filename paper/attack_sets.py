"""Attacked sets for the experiment: test pictures that a victim names right, attacked, outside of the repository.

`runs/attacked/<victim>/<set>.npz`, a set being an attack or `pgd-detector@<detector>`: places in the test set, attacked pictures as
float32, the victim's logits before and after. Every set of a victim begins with the same pictures. A stopped run goes on where it was.

`adversarial/<victim>/` beside the detectors is small enough for the repository: record.npz says which pictures were attacked and
how each attack went, and its shelf holds the scores of the clean pictures and of those that fooled the victim.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from idecode_core.attacks.classic import attack
from idecode_core.attacks.kinds import Attacked, get_attack, set_name, to_tensor
from idecode_core.attacks.on_detector import attack_detector
from idecode_core.attacks.victim import Victim
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, DataError
from idecode_core.files import write_npz
from idecode_core.files.read import DATASET_BYTES, read_arrays
from idecode_core.folder.stored import ADVERSARIAL
from idecode_core.image.sets import ImageSet

FOLDER = Path("runs") / "attacked"
SEED = 0  # of the choice of pictures
PIECE = 64  # pictures that are attacked between two writes
RECORD = "record.npz"
AGAIN = "Write it again with `python -m idecode_core paper score-sets attacks`."
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


def set_path(victim: str, name: str, root: Path = FOLDER) -> Path:
    return root / victim / f"{name}.npz"


def named_right(victim: Victim, images: ImageSet, points: int) -> Indices:
    """The first `points` pictures, in one random order of the set, that the victim names right."""
    order = np.random.default_rng(SEED).permutation(len(images))
    right: list[int] = []
    for start in range(0, len(order), 4 * PIECE):
        part = order[start : start + 4 * PIECE]
        said = victim.all_logits(to_tensor(images.x[part])).argmax(1).numpy()
        right += part[said == images.y[part]].tolist()
        if len(right) >= points:
            break
    return np.array(right[:points], np.int64)


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
        hint="Make it with `python -m idecode_core paper attack-sets`.",
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
        stored = _read(path)
    except DataError:
        return empty
    first = chosen[: min(8, len(stored["indices"]))]
    same = np.array_equal(stored["indices"][: len(chosen)], chosen[: len(stored["indices"])])
    if not same or not np.allclose(
        victim.all_logits(to_tensor(images.x[first])), stored["before"][: len(first)], atol=1e-3
    ):
        return empty
    return stored


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


@dataclass(frozen=True, eq=False)
class Outcome:
    """How one attack went, picture by picture."""

    success: NDArray[np.bool_]  # (N,): named right before and wrong afterwards
    l2: NDArray[np.float32]  # (N,)
    linf: NDArray[np.float32]  # (N,)


@dataclass(frozen=True, eq=False)
class VictimRecord:
    """What was done to one victim."""

    name: str
    network: str  # its backbone
    accuracy: float  # on its test set
    indices: NDArray[np.int64]  # (N,): places of the attacked pictures in CIFAR-10's test set
    scored: int  # how many of them, from the first, are in the tables
    outcomes: dict[str, Outcome]
    """By the name of the attack; an attack may have been run on fewer pictures, from the first."""

    @property
    def paper_network(self) -> str:
        """Which of the paper's two victims it stands for."""
        return "densenet" if self.network.startswith("densenet") else "resnet"


def place(root: Path, victim: str) -> Path:
    """Where the record of a victim is, and the shelf of its sets."""
    return root / ADVERSARIAL / victim


def write_record(root: Path, record: VictimRecord) -> None:
    arrays = {
        "network": np.array(record.network),
        "accuracy": np.array(record.accuracy),
        "indices": record.indices.astype(np.int32),
        "scored": np.array(record.scored),
    }
    for kind, outcome in record.outcomes.items():
        arrays |= {f"{kind}.{name}": value for name, value in vars(outcome).items()}
    write_npz(place(root, record.name) / RECORD, arrays)


def read_record(path: Path) -> VictimRecord:
    names = ("network", "accuracy", "indices", "scored")
    arrays = read_arrays(path, names, what="a record of attacks", error=CheckpointError, hint=AGAIN)
    attacks = [name.removesuffix(".success") for name in arrays if name.endswith(".success")]
    outcomes = {
        attack: Outcome(*(arrays[f"{attack}.{part}"] for part in ("success", "l2", "linf")))
        for attack in attacks
    }
    return VictimRecord(
        path.parent.name,
        str(arrays["network"]),
        float(arrays["accuracy"]),
        arrays["indices"].astype(np.int64),
        int(arrays["scored"]),
        outcomes,
    )


def read_records(root: Path) -> list[VictimRecord]:
    """The victims whose attacked pictures were scored; at least one."""
    records = [read_record(path) for path in sorted(place(root, "").glob(f"*/{RECORD}"))]
    if not records:
        raise CheckpointError(
            f"No scores of attacked pictures are in {place(root, '')}: expected one folder per victim. Attack pictures first "
            "(docs/attacks.md), then `python -m idecode_core paper score-sets attacks`."
        )
    return records
