"""Stored scores of attacked pictures: `adversarial/scores/` beside the detectors, small enough for the repository.

`<victim>.npz` says which pictures were attacked and how each attack went; `<victim>/<detector>.npz` holds the scores of the
clean pictures and of those that fooled the victim, each set by its name.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import CheckpointError
from idecode_core.files import write_npz
from idecode_core.files.read import read_arrays
from idecode_core.folder.manifest import check_made_with

FOLDER = Path("adversarial") / "scores"
CLEAN, CALIBRATION = "clean", "calibration"
AGAIN = "Write it again with `python -m idecode_core score-attacks`."
Float32 = NDArray[np.float32]
Hashes = NDArray[np.bytes_]


@dataclass(frozen=True, eq=False)
class Outcome:
    """How one attack went, picture by picture."""

    success: NDArray[np.bool_]  # (N,): named right before and wrong afterwards
    l2: Float32  # (N,)
    linf: Float32  # (N,)


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


@dataclass(frozen=True, eq=False)
class AttackScores:
    """One detector's scores of the sets of one victim."""

    scorer: str
    """The hash of the detector's scorer; of a rival, that of the victim whose layers it looks into."""
    sets: dict[str, Float32] = field(default_factory=dict)
    """By name (N, draws): "clean", the attacks and, of a rival, "calibration"."""
    inputs: dict[str, Hashes] = field(default_factory=dict)
    """By the name of the set (N,): the content hashes of its pictures, so that none is scored twice."""


def record_path(root: Path, victim: str) -> Path:
    return root / FOLDER / f"{victim}.npz"


def write_record(root: Path, record: VictimRecord) -> None:
    arrays = {
        "network": np.array(record.network),
        "accuracy": np.array(record.accuracy),
        "indices": record.indices.astype(np.int32),
        "scored": np.array(record.scored),
    }
    for attack, outcome in record.outcomes.items():
        arrays |= {f"{attack}.{name}": value for name, value in vars(outcome).items()}
    write_npz(record_path(root, record.name), arrays)


def read_record(path: Path) -> VictimRecord:
    names = ("network", "accuracy", "indices", "scored")
    arrays = read_arrays(path, names, what="a record of attacks", error=CheckpointError, hint=AGAIN)
    attacks = [name.removesuffix(".success") for name in arrays if name.endswith(".success")]
    outcomes = {
        attack: Outcome(*(arrays[f"{attack}.{part}"] for part in ("success", "l2", "linf")))
        for attack in attacks
    }
    return VictimRecord(
        path.stem,
        str(arrays["network"]),
        float(arrays["accuracy"]),
        arrays["indices"].astype(np.int64),
        int(arrays["scored"]),
        outcomes,
    )


def read_records(root: Path) -> list[VictimRecord]:
    """The victims whose attacked pictures were scored; at least one."""
    found = [read_record(path) for path in sorted((root / FOLDER).glob("*.npz"))]
    if not found:
        raise CheckpointError(
            f"No scores of attacked pictures are in {root / FOLDER}: expected one file per victim. Attack pictures first "
            "(docs/attacks.md), then `python -m idecode_core score-attacks`."
        )
    return found


def scores_path(root: Path, victim: str, detector: str) -> Path:
    return root / FOLDER / victim / f"{detector}.npz"


def write_attack_scores(path: Path, scores: AttackScores) -> None:
    arrays: dict[str, NDArray[Any]] = {
        f"set.{name}": vectors.astype(np.float32) for name, vectors in scores.sets.items()
    }
    arrays |= {f"inputs.{name}": hashes for name, hashes in scores.inputs.items()}
    write_npz(path, {**arrays, "scorer": np.array(scores.scorer)})


def read_attack_scores(path: Path, scorer: str | None = None) -> AttackScores:
    """The stored scores; with a hash given, only if they were made with the scorer of that hash."""
    arrays = read_arrays(
        path, ("scorer",), what="scores of attacked pictures", error=CheckpointError, hint=AGAIN
    )
    sets, inputs = (
        {name.removeprefix(kind): a for name, a in arrays.items() if name.startswith(kind)}
        for kind in ("set.", "inputs.")
    )
    found = AttackScores(str(arrays["scorer"]), sets, inputs)
    if scorer is not None:
        check_made_with(path, found.scorer, scorer, AGAIN)
    if found.sets.keys() != found.inputs.keys() or any(
        len(found.inputs[name]) != len(a) for name, a in found.sets.items()
    ):
        raise CheckpointError(f"{path}: expected one hash per picture of every set. {AGAIN}")
    if any(vectors.ndim != 2 or not np.isfinite(vectors).all() for vectors in found.sets.values()):
        raise CheckpointError(f"{path}: expected finite scores (N, draws) of every set. {AGAIN}")
    return found
