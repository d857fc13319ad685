"""Base score, ICAD and iDECODe on each OOD set, beside the paper's numbers; all from stored scores.

What may be wrong with a user's own scores, in sentences: sets too small to tell, scores upside down, row numbers.

Several detectors on one OOD set: the same numbers for each, from stored scores.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal import FloatArray
from idecode_core.conformal.calibration import Calibration
from idecode_core.folder.shelf import ScoreSet
from idecode_core.quality.methods import METHODS, Evaluation, draws, evaluate, evaluate_sets, method_scores
from idecode_core.quality.metrics import roc
from idecode_core.quality.strength import OperatingPoint, operating_point


@dataclass(frozen=True)
class Reported:
    """One number as a paper prints it, in percent, and where it stands there."""

    mean: float
    spread: float
    table: str


Printed = Callable[[str, str, str, str, int, str], Reported | None]
"""(dataset, transforms, OOD set, method, n, metric) -> what the paper prints: `paper.numbers.reported`, in a checkout."""


def nothing_printed(*question: object) -> None:
    """Where no paper is at hand to compare with."""


@dataclass(frozen=True, kw_only=True)
class Row(Evaluation):
    """One method on one OOD set; the paper's numbers are in percent, as printed."""

    ood_set: str
    label: str
    method: str
    n: int
    paper_auroc: Reported | None
    paper_tnr: Reported | None


def table_rows(
    ood_sets: Sequence[ScoreSet],
    evaluations: Mapping[str, Sequence[Evaluation]],
    n: int,
    dataset: str = "",
    transforms: str = "",
    printed: Printed = nothing_printed,
) -> list[Row]:
    """Evaluations of each method, one per OOD set, as rows beside the paper's numbers.

    dataset and transforms say which of the paper's tables to compare with; see `Printed`.
    """
    rows = []
    for i, ood_set in enumerate(ood_sets):
        for method, by_set in evaluations.items():
            used = draws(method, n)
            auroc_there, tnr_there = (
                printed(dataset, transforms, ood_set.name, method, used, metric)
                for metric in ("auroc", "tnr")
            )
            rows.append(
                Row(
                    **vars(by_set[i]),
                    ood_set=ood_set.name,
                    label=ood_set.label,
                    method=method,
                    n=used,
                    paper_auroc=auroc_there,
                    paper_tnr=tnr_there,
                )
            )
    return rows


def side_by_side(
    calibration: Calibration | None,
    id_set: ScoreSet,
    ood_sets: Sequence[ScoreSet],
    n: int,
    aggregate: str = "sum",
    dataset: str = "",
    transforms: str = "",
    printed: Printed = nothing_printed,
) -> list[Row]:
    """The table of the paper's first ablation: every method on every OOD set."""
    evaluations = {
        method: evaluate_sets(calibration, id_set, ood_sets, n, aggregate, method) for method in METHODS
    }
    return table_rows(ood_sets, evaluations, n, dataset, transforms, printed)


@dataclass(frozen=True)
class Growth:
    """One OOD set as n grows: an evaluation for each n, and the (n, percent) pairs that the paper prints."""

    label: str
    ns: tuple[int, ...]
    evaluations: tuple[Evaluation, ...]
    paper_auroc: tuple[tuple[int, float], ...] = ()
    paper_tnr: tuple[tuple[int, float], ...] = ()


def growth(
    ood_set: ScoreSet,
    ns: Sequence[int],
    evaluations: Sequence[Evaluation],
    dataset: str = "",
    transforms: str = "",
    printed: Printed = nothing_printed,
) -> Growth:
    """iDECODe's evaluations at each n, with what the paper prints at n = 1 (ICAD), 5 and 20."""
    there: dict[str, list[tuple[int, float]]] = {"auroc": [], "tnr": []}
    for metric, pairs in there.items():
        for method, n in (("ICAD", 1), ("iDECODe", 5), ("iDECODe", 20)):
            if number := printed(dataset, transforms, ood_set.name, method, n, metric):
                pairs.append((n, number.mean))
    return Growth(ood_set.label, tuple(ns), tuple(evaluations), tuple(there["auroc"]), tuple(there["tnr"]))


CURVE_POINTS = 300


@dataclass(frozen=True, eq=False)
class NamedCurve:
    """A ROC curve to be drawn; its numbers are means over the runs."""

    label: str
    false_positive_rate: FloatArray
    true_positive_rate: FloatArray
    auroc: float
    tnr: float  # at 90% TPR


def curve(ood_set: ScoreSet, evaluation: Evaluation, id_run: FloatArray, ood_run: FloatArray) -> NamedCurve:
    """The ROC curve of one run, thinned to points that lie evenly along it; numbers over all runs."""
    full = roc(id_run, ood_run)
    x, y = full.false_positive_rate, full.true_positive_rate
    along = np.concatenate([[0.0], np.cumsum(np.diff(x) + np.diff(y))])  # 0 .. 2
    keep = np.unique(np.searchsorted(along, np.linspace(0, along[-1], CURVE_POINTS)).clip(max=x.size - 1))
    return NamedCurve(ood_set.label, x[keep], y[keep], evaluation.auroc.mean, evaluation.tnr.mean)


TINY = 30
"""Below this many points an AUROC is mostly chance: its interval is wider than 20 points."""


def counting_columns(score_vectors: NDArray[np.floating]) -> list[int]:
    """Columns that only count the rows (0, 1, 2, ... or 1, 2, 3, ...): row numbers, not scores."""
    if len(score_vectors) < 3:
        return []
    steps = np.diff(score_vectors, axis=0)
    starts = score_vectors[0]
    return [int(i) for i in np.flatnonzero((steps == 1).all(axis=0) & ((starts == 0) | (starts == 1)))]


def columns_used(name: str, titles: Sequence[str], count: int, n: int) -> str:
    """Which columns of a file an evaluation with n draws uses.

    >>> columns_used("id.csv", ["a", "b", "c"], 3, 2)
    'id.csv: columns a, b of 3, the first 2'
    """
    names = list(titles) or [str(i + 1) for i in range(count)]
    shown = ", ".join(names[:n]) if n <= 6 else f"{names[0]} to {names[n - 1]}"
    word = "column" if n == 1 else "columns"
    return f"{name}: {word} {shown}" + (f" of {count}, the first {n}" if n < count else "")


def cautions(
    sizes: dict[str, int], auroc: float, interval: tuple[float, float], point: OperatingPoint | None
) -> list[str]:
    """Sentences about a result that should not be taken at face value; none for a sound one."""
    sentences = []
    small = [f"{size:,} {name}" for name, size in sizes.items() if size < TINY]
    if small:
        sentences.append(
            f"Only {' and '.join(small)}: the AUROC may lie anywhere from {100 * interval[0]:.1f} to "
            f"{100 * interval[1]:.1f} (95% interval). Bring at least {TINY} of each."
        )
    if auroc < 0.5:
        sentences.append(
            f"AUROC {100 * auroc:.1f} is below 50, worse than guessing: OOD points score lower than iD points. Larger must "
            "mean stranger; if your scores mean confidence, bring them with a minus sign."
        )
    if point is not None and point.id_flagged == point.id_points:
        sentences.append(
            f"All {point.id_points:,} iD points are flagged at epsilon = {point.epsilon:g}: the calibration scores and the test "
            "scores do not come from the same detector or preprocessing. Make both the same way."
        )
    return sentences


@dataclass(frozen=True, eq=False, kw_only=True)
class DetectorOnSet(Evaluation):
    """One detector, with n draws, on one OOD set."""

    detector: str
    id_label: str
    ood_label: str
    n: int
    point: OperatingPoint
    curve: NamedCurve  # its label is the detector's name


def detector_on_set(
    name: str,
    calibration: Calibration,
    id_set: ScoreSet,
    ood_set: ScoreSet,
    n: int,
    epsilon: float,
    aggregate: str = "sum",
) -> DetectorOnSet:
    """A row of the table of detectors and its ROC curve."""
    n = min(n, calibration.n_max)
    evaluation = evaluate(calibration, id_set, ood_set, n, aggregate)
    known, strange = (
        method_scores(calibration, score_set.score_vectors, n, aggregate=aggregate)[0]
        for score_set in (id_set, ood_set)
    )
    return DetectorOnSet(
        **vars(evaluation),
        detector=name,
        id_label=id_set.label,
        ood_label=ood_set.label,
        n=n,
        point=operating_point(calibration, id_set, ood_set, n, epsilon, aggregate),
        curve=replace(curve(ood_set, evaluation, known, strange), label=name),
    )
