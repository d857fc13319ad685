"""What the Evaluate page shows, of one detector or of several, as a report and as a notebook that computes it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from idecode_core.report.content import Figure, Report, Value, command
from idecode_core.report.notebook import Notebook, from_template

if TYPE_CHECKING:
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.folder.shelf import ScoreSet
    from idecode_core.quality.methods import Evaluation
    from idecode_core.quality.side_by_side import DetectorOnSet, Reported, Row

AT_WORST = (
    "At least and at most: what holds with probability 95% each for endless test points of the same kinds, however few were "
    "tested; TNR and FPR there at thresholds that keep 90% and 95% of all that belongs in truth, not of the test points. It "
    "says nothing about other kinds of OOD."
)
"""What the bounds of `quality.metrics.Bounds` promise, and what they do not."""


@dataclass(frozen=True, eq=False)
class EvaluationShown:
    """What is on the page: an iD set against OOD sets, at one n and F."""

    name: str
    id_set: "ScoreSet"
    ood_sets: "Sequence[ScoreSet]"
    rows: "Sequence[Row]"
    n: int
    aggregate: str
    epsilon: float = 0.05
    selected: str = ""
    """The label of the OOD set in full colour."""
    folder: str = ""
    """The name of the detector's folder, where its stored scores are evaluated."""

    @property
    def title(self) -> str:
        return f"How well {self.name} tells {self.id_set.label} from other data"


def evaluation_report(shown: EvaluationShown, figure: Any, caption: str) -> Report:
    """One row per method and OOD set; every rate from 0 to 1, the paper's too."""
    id_set = shown.id_set
    settings: dict[str, Value] = {
        "evaluated": shown.name,
        "iD set": f"{id_set.label} ({len(id_set):,} points)",
        "OOD sets": ", ".join(f"{ood_set.label} ({len(ood_set):,})" for ood_set in shown.ood_sets),
        "n": shown.n,
        "aggregate": shown.aggregate,
        "runs": max(len(row.auroc.values) for row in shown.rows),
    }
    return Report(
        title=shown.title,
        sentences=(
            "AUROC is the chance that an OOD point is stranger than an iD point. TNR is the share of OOD points that are "
            "detected when 90% of the iD points are kept, FPR the share let through when 95% of them are kept.",
            "Every rate is from 0 to 1. Numbers are means over independent runs of random transforms, with the standard deviation from run to run; "
            "the 95% interval of the AUROC is about the number of test points (DeLong).",
            AT_WORST,
        ),
        settings=settings,
        rows=tuple(_row(row) for row in shown.rows),
        figures=(Figure(figure, caption),),
        commands=(_command(shown.folder, shown.n, shown.epsilon, shown.aggregate),) if shown.folder else (),
    )


def _command(folder: str, n: int, epsilon: float, aggregate: str) -> str:
    options = {"--detector": folder, "--n": n, "--epsilon": epsilon, "--aggregate": aggregate}
    return command("evaluate", **options)


def _row(row: "Row") -> dict[str, Value]:
    return {
        "ood_set": row.label,
        "method": row.method,
        "n": row.n,
        **rates(row),
        "paper_auroc": _share(row.paper_auroc),
        "paper_tnr_at_90_tpr": _share(row.paper_tnr),
    }


def rates(evaluation: "Evaluation") -> dict[str, Value]:
    """From 0 to 1: means over the runs, spreads from run to run, the 95 % interval of the AUROC, and conformal bounds."""
    from idecode_core.quality.methods import bounds_of

    low, high = evaluation.interval
    bounds = bounds_of(evaluation)
    return {
        "auroc": evaluation.auroc.mean,
        "auroc_spread": evaluation.auroc.spread,
        "auroc_low_95": low,
        "auroc_high_95": high,
        "tnr_at_90_tpr": evaluation.tnr.mean,
        "tnr_spread": evaluation.tnr.spread,
        "fpr_at_95_tpr": evaluation.fpr.mean,
        "fpr_spread": evaluation.fpr.spread,
        "auroc_at_least": None if bounds is None else bounds.auroc,
        "tnr_at_least": None if bounds is None else bounds.tnr,
        "fpr_at_most": None if bounds is None else bounds.fpr,
    }


def _share(printed: "Reported | None") -> float | None:
    """The paper prints percent with two decimals."""
    return round(printed.mean / 100, 6) if printed else None


def evaluation_notebook(
    shown: EvaluationShown, folder: str, calibration: "Calibration | None", stored: bool
) -> Notebook:
    """Stored scores are read from the detector's folder; a visitor's own lie beside the notebook, and with them their
    calibration where it is none of a detector's."""
    from idecode_core.folder.shelf import DRAWS_PER_RUN

    drawn = [
        scored.score_vectors.shape[1]
        for scored in (shown.id_set, *shown.ood_sets, calibration)
        if scored is not None
    ]
    settings: dict[str, Any] = {
        "selected": shown.selected or shown.ood_sets[0].label,
        "n": shown.n,
        "n_max": min(DRAWS_PER_RUN, *drawn),
        "epsilon": shown.epsilon,
        "aggregate": shown.aggregate,
    }
    arrays: dict[str, NDArray[Any]] = {}
    if folder:
        settings["detector"] = Path(folder).name
    if not stored:
        (ood_set,) = shown.ood_sets
        arrays = {"iD": shown.id_set.score_vectors, "OOD": ood_set.score_vectors}
        settings |= {"arrays": "evaluation.npz", "iD": shown.id_set.label, "OOD": ood_set.label}
    if calibration is not None and folder:
        settings["calibration_sha256"] = calibration.sha256
    elif calibration is not None:
        arrays["calibration"] = calibration.score_vectors
    return from_template(
        "evaluation",
        shown.title,
        settings,
        {metric: [getattr(row, metric).mean for row in shown.rows] for metric in ("auroc", "tnr")},
        arrays=arrays,
        stored=stored,
        ranked=calibration is not None and not folder,
        ranked_by_detector=calibration is not None and bool(folder),
    )


def detectors_report(
    rows: "Sequence[DetectorOnSet]",
    aggregate: str,
    figure: Any,
    caption: str,
    folders: Sequence[str] = (),
) -> Report:
    """One row per detector; every rate is 0 to 1. `folders` are those of the rows, where they are detectors."""
    first = rows[0]
    return Report(
        title=f"Detectors on {first.ood_label}",
        sentences=(
            "AUROC is the chance that an OOD point is stranger than an iD point, with its 95% interval (DeLong); TNR is the share "
            "of OOD points detected when 90% of the iD points are kept, FPR the share let through when 95% are kept.",
            "Every rate is from 0 to 1. Caught and false alarms are the shares flagged at epsilon, in the first run of draws.",
            AT_WORST,
        ),
        settings={"OOD set": first.ood_label, "epsilon": first.point.epsilon, "aggregate": aggregate},
        rows=tuple(_detector_row(row) for row in rows),
        figures=(Figure(figure, caption),),
        commands=tuple(
            _command(folder, row.n, row.point.epsilon, aggregate)
            for folder, row in zip(folders, rows, strict=False)
        ),
    )


def _detector_row(row: "DetectorOnSet") -> dict[str, Value]:
    return {
        "detector": row.detector,
        "id_set": row.id_label,
        "ood_set": row.ood_label,
        "n": row.n,
        **{name: rate for name, rate in rates(row).items() if not name.endswith("_spread")},
        "caught_at_epsilon": row.point.ood_share,
        "false_alarms_at_epsilon": row.point.id_share,
    }


def detectors_notebook(
    rows: "Sequence[DetectorOnSet]", folders: Mapping[str, int], ood_set: str, aggregate: str
) -> Notebook:
    """`folders` are the names of the detectors' folders, or of stored rivals, with the n used for each, in the order of the rows."""
    return from_template(
        "detectors",
        f"Detectors on {rows[0].ood_label}",
        {
            "n_of_each": dict(folders),
            "ood_set": ood_set,
            "epsilon": rows[0].point.epsilon,
            "aggregate": aggregate,
        },
        {"auroc": [row.auroc.mean for row in rows], "caught": [row.point.ood_share for row in rows]},
    )
