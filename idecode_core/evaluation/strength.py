"""How good a detector is, in one number: the mean AUROC over the OOD sets that its scores are stored for."""

from dataclasses import dataclass

import numpy as np

from idecode_core.evaluation.methods import evaluate_sets
from idecode_core.folder.stored import Stored

WEAK = 0.8


@dataclass(frozen=True)
class Strength:
    """Mean AUROC (0 to 1) with n draws."""

    auroc: float
    sets: int
    n: int

    @property
    def is_weak(self) -> bool:
        """Whether many strange inputs would pass for ordinary ones."""
        return self.auroc < WEAK

    def __str__(self) -> str:
        """In percent, with a warning where it is due.

        >>> str(Strength(0.7612, 4, 5))
        'AUROC 76.1, weak'
        """
        return f"AUROC {100 * self.auroc:.1f}{', weak' if self.is_weak else ''}"


def strength(stored: Stored, n: int = 5) -> Strength:
    """From stored scores; n is at most what the calibration holds."""
    n = min(n, stored.calibration.n_max)
    found = evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, n)
    return Strength(float(np.mean([evaluation.auroc.mean for evaluation in found])), len(found), n)
