"""What a score costs, beside how good it is: passes through a network per picture, mean AUROC, and the front that none is above.

Costs are measured once and stored beside the scores of rivals (`idecode paper score-sets rivals`); AUROC follows from stored scores.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from idecode_core.errors import CheckpointError
from idecode_core.files.read import read_json
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import SCORE_AGAIN, Cost, Scores, scorer_names
from idecode_core.folder.stored import RIVALS, Stored, open_all, open_rival
from idecode_core.quality.methods import evaluate_sets

NS = (1, 5, 20)
"""Numbers of draws at which detectors are measured."""
COSTS = "cost.json"
"""What detectors cost, beside the scores of rivals."""
T = TypeVar("T")


@dataclass(frozen=True)
class Costed:
    """One method: passes per picture, and its AUROC in percent by the label of the OOD set."""

    title: str
    passes: float
    is_rival: bool
    aurocs: dict[str, float]
    imagenet: bool = False
    """Whether its network was trained on ImageNet before."""

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.aurocs.values())))


def measured(root: Path | str) -> dict[str, dict[str, Any]]:
    """What is stored of detectors' costs, by name; only of those whose scorer is the one that was measured."""
    path = Path(root) / RIVALS / COSTS
    if not path.is_file():
        return {}
    entries = read_json(path, what="what detectors cost per picture", error=CheckpointError, hint=SCORE_AGAIN)
    return {
        name: entry
        for name, entry in entries.items()
        if (Path(root) / name / "config.json").is_file()
        and read_settings(Path(root) / name).scorer_sha256 == entry["scorer"]
    }


def read_costs(root: Path | str) -> dict[str, dict[int, Cost]]:
    """What a score of one picture takes, by detector and n."""
    return {
        name: {int(n): Cost(**cost) for n, cost in entry["n"].items()}
        for name, entry in measured(root).items()
    }


def read_training_pflop(root: Path | str) -> dict[str, dict[str, float]]:
    """By detector: the recipes that its networks were trained by, and the 10^15 operations that each took."""
    return {
        name: entry["training_pflop"] for name, entry in measured(root).items() if "training_pflop" in entry
    }


def work(cost: Cost) -> float:
    """Passes per picture, a backward pass counted as two forward ones."""
    return cost.forward + 2 * cost.backward


def front(methods: Sequence[T], cost: Callable[[T], float], value: Callable[[T], float]) -> list[T]:
    """Those that no other beats at the same cost or less; the cheapest first.

    >>> front([(1, 80), (2, 79), (9, 95), (20, 95)], lambda pair: pair[0], lambda pair: pair[1])
    [(1, 80), (9, 95)]
    """
    best: list[T] = []
    for method in sorted(methods, key=lambda method: (cost(method), -value(method))):
        if not best or value(method) > value(best[-1]):
            best.append(method)
    return best


def costed_methods(root: Path | str) -> list[Costed]:
    """Every detector of CIFAR-10 with n = 1, 5 and 20 and every rival whose cost is known, on the OOD sets that all of them have."""
    costs, detectors = read_costs(root), open_all(root)
    after_imagenet = {stored.name for stored in detectors if stored.saw_imagenet}
    measurements: list[tuple[str, Stored | Scores, int, Cost]] = [
        (f"iDECODe {stored.name.removeprefix('cifar10-')}, n={n}", stored, n, costs[stored.name][n])
        for stored in detectors
        for n in NS
        if n in costs.get(stored.name, {})
    ]
    for name in scorer_names(Path(root) / RIVALS):
        rival = open_rival(root, name)
        if rival.about.cost is not None:
            measurements.append((rival.title, rival, 1, rival.about.cost))
    if not measurements:
        return []
    names = set.intersection(*({ood.name for ood in stored.ood_sets} for _, stored, _, _ in measurements))
    methods = []
    for title, stored, n, cost in measurements:
        sets = [ood for ood in stored.ood_sets if ood.name in names]
        evaluations = evaluate_sets(stored.calibration, stored.id_set, sets, n)
        aurocs = {ood.label: 100 * got.auroc.mean for ood, got in zip(sets, evaluations, strict=True)}
        network = stored.about.network if isinstance(stored, Scores) else stored.name
        imagenet = network in after_imagenet
        methods.append(Costed(title, work(cost), isinstance(stored, Scores), aurocs, imagenet))
    return methods
