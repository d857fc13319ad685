"""Stored scores of rivals: `rivals/scores/<name>.npz` beside the detectors has one score per point of every set, and no weights.

Each file carries the hash of the detector whose network it was made with. `rivals/cost.json` says what detectors cost.
No torch.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal.calibration import Calibration
from idecode_core.errors import CheckpointError
from idecode_core.evaluation.ablations import CALIBRATION
from idecode_core.evaluation.one_class_rivals import BETWEEN, TITLES, one_class_rivals, score_path, sets_of
from idecode_core.evaluation.sets import label
from idecode_core.files import write_json, write_npz
from idecode_core.files.read import read_json
from idecode_core.folder.scores import ScoreSet, id_and_ood, in_order, read_tied
from idecode_core.folder.settings import checkpoint_root, find_detector, read_settings
from idecode_core.folder.stored import Stored, open_stored

FOLDER, COSTS = "rivals", "cost.json"
SCORE_AGAIN = "Make it again with `python -m idecode_core score-rivals`."


@dataclass(frozen=True)
class Cost:
    """What a score of one picture takes."""

    forward: float
    """Pictures that go through a network."""
    backward: float
    """Gradients that come back through it."""
    seconds: float
    """In units of one forward pass through the network of `UNIT`, measured side by side."""

    def passes(self) -> str:
        """
        >>> Cost(2, 1, 4.2).passes()
        '2 + 1 back'
        """
        return f"{self.forward:g}" + (f" + {self.backward:g} back" if self.backward else "")


UNIT = "cifar10-invariance"


@dataclass(frozen=True)
class About:
    """What a rival is."""

    title: str
    network: str
    """The detector whose network it uses."""
    labels: bool
    """Whether it, or its network, learned from labels."""
    cost: Cost | None
    """Not known of rivals of detectors of one class, which bring their own networks."""
    accuracy: float | None = None
    """Of the classifier, on the iD test points; where it is not that of the network's own folder."""


@dataclass(frozen=True, eq=False)
class StoredRival:
    """Everything that tables and figures need of a rival."""

    name: str
    about: About
    calibration: Calibration  # (k, 1), in the precision of the stored scores
    id_set: ScoreSet
    ood_sets: list[ScoreSet]

    @property
    def title(self) -> str:
        return f"{self.about.title} ({self.about.network.removeprefix('cifar10-')})"


def rival_path(root: Path | str, name: str) -> Path:
    if BETWEEN in name:
        return score_path(root, *name.split(BETWEEN, 1))
    return Path(root) / FOLDER / "scores" / f"{name}.npz"


def write_rival(
    root: Path | str, name: str, about: About, scores: Mapping[str, NDArray[Any]], scorer_sha256: str
) -> None:
    """Scores (N,) by set, the calibration set among them, tied to the detector whose network made them."""
    arrays = {set_name: values.astype(np.float32) for set_name, values in scores.items()}
    words = np.array(json.dumps(asdict(about)))
    write_npz(rival_path(root, name), {**arrays, "about": words, "scorer": np.array(scorer_sha256)})


def open_rival(root: Path | str, name: str) -> StoredRival:
    """A rival's stored scores; refuses those that were made with another network than the one that is there."""
    if BETWEEN in name:
        detector, method = name.split(BETWEEN, 1)
        sets = sets_of(root, name)
        return StoredRival(name, About(TITLES[method], detector, False, None), *sets)
    path = rival_path(root, name)
    arrays = read_tied(path, ("about", CALIBRATION), None)
    try:
        words = json.loads(str(arrays.pop("about")))
        about = About(**{**words, "cost": Cost(**words["cost"])})
        network = read_settings(Path(root) / about.network)
    except (TypeError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path} does not say what it is: expected words on a rival. {SCORE_AGAIN}"
        ) from error
    read_tied(path, (), network.scorer_sha256)
    calibration = Calibration(arrays.pop(CALIBRATION)[:, None].astype(np.float64)).rounded(np.float32)
    known = f"{network.dataset}-test"
    found = in_order(
        ScoreSet(set_name, label(set_name), set_name != known, scores[:, None])
        for set_name, scores in arrays.items()
    )
    return StoredRival(name, about, calibration, *id_and_ood(found, str(path)))


def rival_names(root: Path | str | None = None) -> list[str]:
    """Rivals with stored scores, in alphabetical order."""
    return sorted(path.stem for path in rival_path(root or checkpoint_root(), "*").parent.glob("*.npz"))


def rivals_beside(detector: str) -> list[str]:
    """The rivals that can stand beside a detector that comes with the project: those of one class where it knows one."""
    return one_class_rivals(checkpoint_root(), detector) or rival_names()


def open_rivals(root: Path | str) -> list[StoredRival]:
    return [open_rival(root, name) for name in rival_names(root)]


def open_scores(name: str) -> Stored | StoredRival:
    """What is stored of a detector, or of a rival, by its name among those that come with the project."""
    root = checkpoint_root()
    rival = name in rival_names(root) or BETWEEN in name
    return open_rival(root, name) if rival else open_stored(find_detector(name))


def read_costs(root: Path | str) -> dict[str, dict[int, Cost]]:
    """What detectors cost, by name and n; only of those whose scorer is the one that was measured."""
    path = Path(root) / FOLDER / COSTS
    if not path.is_file():
        return {}
    found = read_json(path, what="what detectors cost per picture", error=CheckpointError, hint=SCORE_AGAIN)
    return {
        name: {int(n): Cost(**cost) for n, cost in entry["n"].items()}
        for name, entry in found.items()
        if (Path(root) / name / "config.json").is_file()
        and read_settings(Path(root) / name).scorer_sha256 == entry["scorer"]
    }


def write_cost(root: Path | str, name: str, costs: Mapping[int, Cost], scorer_sha256: str) -> None:
    path = Path(root) / FOLDER / COSTS
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    entry = {"scorer": scorer_sha256, "n": {str(n): asdict(cost) for n, cost in costs.items()}}
    write_json(path, dict(sorted({**before, name: entry}.items())))
