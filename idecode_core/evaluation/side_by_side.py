"""Base score, ICAD and iDECODe on each OOD set, beside the paper's numbers; all from stored scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from idecode_core.conformal import FloatArray
from idecode_core.conformal.calibration import Calibration
from idecode_core.evaluation.methods import METHODS, Evaluation, draws, evaluate_sets
from idecode_core.evaluation.metrics import roc
from idecode_core.evaluation.paper import Reported, reported
from idecode_core.folder.scores import ScoreSet


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
) -> list[Row]:
    """Evaluations of each method, one per OOD set, as rows beside the paper's numbers.

    dataset and transforms say which of the paper's tables to compare with; see `paper.reported`.
    """
    rows = []
    for i, ood_set in enumerate(ood_sets):
        for method, found in evaluations.items():
            used = draws(method, n)
            auroc_there, tnr_there = (
                reported(dataset, transforms, ood_set.name, method, used, metric)
                for metric in ("auroc", "tnr")
            )
            rows.append(
                Row(
                    **vars(found[i]),
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
) -> list[Row]:
    """The table of the paper's first ablation: every method on every OOD set."""
    evaluations = {
        method: evaluate_sets(calibration, id_set, ood_sets, n, aggregate, method) for method in METHODS
    }
    return table_rows(ood_sets, evaluations, n, dataset, transforms)


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
) -> Growth:
    """iDECODe's evaluations at each n, with what the paper prints at n = 1 (ICAD), 5 and 20."""
    printed: dict[str, list[tuple[int, float]]] = {"auroc": [], "tnr": []}
    for metric, pairs in printed.items():
        for method, n in (("ICAD", 1), ("iDECODe", 5), ("iDECODe", 20)):
            if number := reported(dataset, transforms, ood_set.name, method, n, metric):
                pairs.append((n, number.mean))
    return Growth(
        ood_set.label, tuple(ns), tuple(evaluations), tuple(printed["auroc"]), tuple(printed["tnr"])
    )


@dataclass(frozen=True, eq=False)
class NamedCurve:
    """A ROC curve to be drawn; its numbers are means over the runs."""

    label: str
    false_positive_rate: FloatArray
    true_positive_rate: FloatArray
    auroc: float
    tnr: float  # at 90% TPR


def curve(
    ood_set: ScoreSet, evaluation: Evaluation, id_run: FloatArray, ood_run: FloatArray, points: int = 300
) -> NamedCurve:
    """The ROC curve of one run, thinned to about `points` points that lie evenly along it; numbers over all runs."""
    full = roc(id_run, ood_run)
    x, y = full.false_positive_rate, full.true_positive_rate
    along = np.concatenate([[0.0], np.cumsum(np.diff(x) + np.diff(y))])  # 0 .. 2
    keep = np.unique(np.searchsorted(along, np.linspace(0, along[-1], points)).clip(max=x.size - 1))
    return NamedCurve(ood_set.label, x[keep], y[keep], evaluation.auroc.mean, evaluation.tnr.mean)
