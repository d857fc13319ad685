"""iDECODe and its rivals on the same test points: what a table of both needs of each. No torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from idecode_core.evaluation.methods import Evaluation, evaluate_sets
from idecode_core.evaluation.rates import RateInBand, rate_in_band
from idecode_core.evaluation.rivals import Cost, StoredRival, open_rivals, read_costs
from idecode_core.folder.stored import Stored, open_all

NS = (5, 20)


@dataclass(frozen=True, eq=False)
class Contender:
    """One method with its number of draws."""

    title: str
    stored: Stored | StoredRival
    n: int
    labels: bool
    """Whether it learned from labels."""
    cost: Cost | None

    @property
    def is_rival(self) -> bool:
        return isinstance(self.stored, StoredRival)

    @cached_property
    def evaluations(self) -> dict[str, Evaluation]:
        """By OOD set."""
        stored = self.stored
        found = evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, self.n)
        return dict(zip((one.name for one in stored.ood_sets), found, strict=True))

    def false_detections(self, epsilon: float) -> RateInBand:
        return rate_in_band(self.stored.calibration, self.stored.id_set.score_vectors, self.n, epsilon)


def learned_from_labels(scorer: Mapping[str, Any]) -> bool:
    """From a scorer's settings: a network that names classes has learned labels; of a merged one, any member."""
    return bool(scorer.get("classes")) or any(map(learned_from_labels, scorer.get("members", ())))


def contenders(root: Path | str) -> list[Contender]:
    """Every detector of CIFAR-10 with n = 5 and 20, then every rival; those without labels first."""
    costs = read_costs(root)
    found = [
        Contender(
            f"iDECODe {stored.name.removeprefix('cifar10-')}, n={n}",
            stored,
            n,
            learned_from_labels(stored.settings.scorer),
            costs.get(stored.name, {}).get(n),
        )
        for stored in open_all(root)
        for n in NS
    ]
    found += [
        Contender(rival.title, rival, 1, rival.about.labels, rival.about.cost) for rival in open_rivals(root)
    ]
    return sorted(found, key=lambda one: one.labels)  # stable
