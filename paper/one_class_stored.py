"""What is stored of one-class detection: every training of every method on a class, and its AUROC and false detection rate.

`python -m idecode_core paper one-class` makes the scores, on the shelf of `one-class/<what is known>` beside the detectors:
iDECODe's are the place's own, and in `one-class/all-ranges/` with all four ranges of each draw. Further trainings of a method,
with another seed or more steps, are scorers of their own, and say so in their `About`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal.calibration import Calibration
from idecode_core.folder.shelf import CALIBRATION, open_scores, score_paths, scorer_names
from idecode_core.folder.stored import ONE_CLASS
from idecode_core.quality.methods import Metric
from idecode_core.quality.metrics import auroc
from idecode_core.quality.strength import RateInBand, rate_in_band
from idecode_core.training.recipes import CIFAR10_KINDS, CIFAR100_KINDS
from paper.numbers import reported_one_class

CIFAR10 = tuple(f"cifar10-{kind}" for kind in CIFAR10_KINDS)
CIFAR100 = {number: f"cifar100-{kind}" for number, kind in CIFAR100_KINDS.items()}
RIVALS = {
    "oc_svm": "OC-SVM",
    "deep_svdd": "DeepSVDD",
    "geometric": "GM",
    "rotnet": "RotNet",
    "auxiliary": "AUX",
    "auxiliary_shifts": "AUX+Trans",
    "goad": "GOAD",
    "goad_affine": "GOAD, affine",
    "csi": "CSI",
}
"""Kind of scorer -> the paper's name."""
IDECODE = "iDECODe"
EPSILON, N = 0.05, 5
PER_DRAW = 4
"""Ranges, and so columns, of each draw where all are stored."""
Vectors = NDArray[np.float64]
Scores = Mapping[str, Vectors]
"""Score vectors (N, n) of three parts: calibration, known (test points of the class), strange (those of the others)."""


def place(root: Path, known: str, all_ranges: bool = False) -> Path:
    """Where the scores of detectors of one class are stored."""
    return root / ONE_CLASS / ("all-ranges" if all_ranges else "") / known


def trainings(folder: Path) -> dict[tuple[str, int], list[Scores]]:
    """What is stored of a class: by the paper's name of a method and its budget, a training for each seed, in their order."""
    by_seed: dict[tuple[str, int], dict[int, Scores]] = {}
    for scorer in ([""] if score_paths(folder) else []) + scorer_names(folder):
        stored = open_scores(folder, scorer)
        about, (strange,) = stored.about, (part for part in stored.sets.values() if part.is_ood)
        parts = {"calibration": stored.sets[CALIBRATION], "known": stored.id_set, "strange": strange}
        by_seed.setdefault((about.title, about.budget), {})[about.seed] = {
            part: score_set.score_vectors.astype(np.float64) for part, score_set in parts.items()
        }
    return {method: [runs[seed] for seed in sorted(runs)] for method, runs in by_seed.items()}


def over_runs(scores: Scores, n: int) -> Metric:
    """AUROC of the sum of n draws, for each run of n draws that the stored ones make."""
    known, strange = scores["known"], scores["strange"]
    starts = range(0, known.shape[1] - n + 1, n)
    return Metric.of(
        [auroc(known[:, s : s + n].sum(axis=1), strange[:, s : s + n].sum(axis=1)) for s in starts]
    )


def rate(scores: Scores, n: int) -> RateInBand:
    """The share of the class's own test points that is flagged at EPSILON, first run, beside its band."""
    return rate_in_band(Calibration(scores["calibration"]), scores["known"][:, :n], n, EPSILON)


def mixed(each: Vectors) -> Vectors:
    """What the released program takes for pictures' scores: base scores (N, n, 4) -> (N, n).

    It has the four turns of all pictures one turn after the other, and reads the list as if each picture's four came
    together. So a "picture's score" is the mean of four neighbours in one turn (facts about the code in docs/one-class.md).
    """
    return np.stack(
        [each[:, draw].T.reshape(-1, each.shape[2]).mean(axis=1) for draw in range(each.shape[1])], axis=1
    )


Method = tuple[str, int]
"""The paper's name, and how many times the usual steps it was trained for."""
OURS: Method = (IDECODE, 1)


@dataclass(frozen=True, eq=False)
class KnownClass:
    """What is stored of one class; iDECODe with one range per draw (N, 20), and with all four (N, 5, 4)."""

    dataset: str
    number: int
    kind: str
    methods: dict[Method, list[Scores]]
    """By method its trainings, which differ in their seed; iDECODe is among them."""
    wide: Sequence[Scores]

    @property
    def single(self) -> Scores:
        """iDECODe's first training."""
        return self.methods[OURS][0]

    @property
    def all_ranges(self) -> Scores:
        return self.wide[0]

    @property
    def averaged(self) -> Scores:
        """All four ranges of a draw are one score."""
        return averaged(self.all_ranges)

    @property
    def has_rivals(self) -> bool:
        return any(name != IDECODE for name, _ in self.methods)

    def auroc(self, method: Method) -> Metric | None:
        """Over its trainings, ours at n = N; None where it was not run."""
        runs = self.methods.get(method, [])
        return Metric.of([over_runs(each, draws(each)).mean for each in runs]) if runs else None

    def paper(self, method: str) -> str:
        theirs = reported_one_class(self.dataset, self.number, method)
        return "–" if theirs is None else f"{theirs:.1f}"


def draws(scores: Scores) -> int:
    """Of each point, in tables: a rival draws nothing."""
    return min(N, int(scores["known"].shape[1]))


def averaged(all_ranges: Scores) -> Scores:
    return {part: each.mean(axis=2) for part, each in all_ranges.items()}


def find(root: Path, dataset: str, kinds: Mapping[int, str]) -> list[KnownClass]:
    classes = []
    for number, kind in kinds.items():
        methods, wide = (trainings(place(root, f"{dataset}-{kind}", wide)) for wide in (False, True))
        if OURS in methods and OURS in wide:
            split = [
                {part: each.reshape(len(each), -1, PER_DRAW) for part, each in scores.items()}
                for scores in wide[OURS]
            ]
            classes.append(KnownClass(dataset, number, kind, methods, split))
    return classes
