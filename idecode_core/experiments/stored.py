"""A detector as its tables see it: settings, calibration and stored scores. No model is loaded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idecode_core.calibration import Calibration
from idecode_core.checkpoint import read_calibration, read_config
from idecode_core.errors import CheckpointError
from idecode_core.evaluation import ScoreSet, id_and_ood, read_scores
from idecode_core.paper import transforms_in_paper
from idecode_core.training_finish import TrainingRecord, read_training

CIFAR10_DETECTORS = ("cifar10-projective", "cifar10-rotations", "cifar10-invariance", "cifar10-merged")


@dataclass(frozen=True, eq=False)
class Stored:
    """Everything in a detector folder but the weights."""

    name: str
    folder: Path
    config: dict[str, Any]
    calibration: Calibration
    id_set: ScoreSet
    ood_sets: list[ScoreSet]
    training: TrainingRecord | None

    @property
    def dataset(self) -> str:
        """The iD dataset, from the name of its test set."""
        return self.id_set.name.rsplit("-", 1)[0]

    @property
    def transforms(self) -> str:
        """The paper's name of G; "" for a merged detector, which has several, and for sounds."""
        return transforms_in_paper(self.config["scorer"])


def open_stored(root: Path | str, name: str) -> Stored:
    """The stored numbers of one detector; refuses scores that were made with another scorer."""
    folder = Path(root) / name
    config = read_config(folder)
    identity = str(config["scorer_sha256"])
    known, outside = id_and_ood(read_scores(folder, identity), str(folder))
    return Stored(
        name, folder, config, read_calibration(folder, identity), known, outside, read_training(folder)
    )


def open_all(root: Path | str, names: tuple[str, ...] = CIFAR10_DETECTORS) -> list[Stored]:
    """Those of `names` that are there with scores; at least one."""
    found = [
        open_stored(root, name)
        for name in names
        if (Path(root) / name / "config.json").exists() and any((Path(root) / name / "scores").glob("*.npz"))
    ]
    if not found:
        raise CheckpointError(
            f"No detector with stored scores is in {root}: expected one of {', '.join(names)}. Train one with "
            "`python -m idecode_core train`, then `python -m idecode_core score-sets`."
        )
    return found
