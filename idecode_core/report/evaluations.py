"""What the Evaluate page shows, as a report and as a notebook that computes it again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from idecode_core.report.content import Figure, Report, Value
from idecode_core.report.notebook import Cell, Code, Text, opening, to_notebook
from idecode_core.report.sources import arrays_cell, calibration_cell, stored_cell
from idecode_core.report.steps import as_on_the_page

if TYPE_CHECKING:
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.evaluation.methods import Evaluation
    from idecode_core.evaluation.paper import Reported
    from idecode_core.evaluation.side_by_side import Row
    from idecode_core.folder.scores import ScoreSet


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What is on the page: an iD set against OOD sets, at one n and F."""

    name: str
    id_set: "ScoreSet"
    ood_sets: "Sequence[ScoreSet]"
    rows: "Sequence[Row]"
    n: int
    aggregate: str

    @property
    def title(self) -> str:
        return f"How well {self.name} tells {self.id_set.label} from other data"


def evaluation_report(shown: Evaluated, figure: Any, caption: str) -> Report:
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
        ),
        settings=settings,
        rows=tuple(_row(row) for row in shown.rows),
        figures=(Figure(figure, caption),),
    )


def _row(row: "Row") -> dict[str, Value]:
    return {
        "ood_set": row.label,
        "method": row.method,
        "n": row.n,
        **rates(row),
        "paper_auroc": _share(row.paper_auroc),
        "paper_tnr_at_90_tpr": _share(row.paper_tnr),
    }


def rates(found: "Evaluation") -> dict[str, Value]:
    """From 0 to 1: means over the runs, spreads from run to run, and the 95 % interval of the AUROC."""
    low, high = found.interval
    return {
        "auroc": found.auroc.mean,
        "auroc_spread": found.auroc.spread,
        "auroc_low_95": low,
        "auroc_high_95": high,
        "tnr_at_90_tpr": found.tnr.mean,
        "tnr_spread": found.tnr.spread,
        "fpr_at_95_tpr": found.fpr.mean,
        "fpr_spread": found.fpr.spread,
    }


def _share(printed: "Reported | None") -> float | None:
    """The paper prints percent with two decimals."""
    return round(printed.mean / 100, 6) if printed else None


def evaluation_notebook(
    shown: Evaluated,
    folder: str,
    calibration: "Calibration | None",
    dataset: str,
    transforms: str,
    stored: bool,
) -> str:
    """Stored scores are read from the detector's folder; a visitor's own are inside the notebook."""
    if stored:
        assert calibration is not None
        scores: list[Cell] = [Code(stored_cell(folder, calibration))]
    else:
        scores = _own_scores(shown, folder, calibration)
    return to_notebook(
        [
            *opening(shown.title, "This notebook computes the table of the Evaluate page again."),
            Text("## The scores"),
            *scores,
            Text("## Base score, ICAD and iDECODe side by side"),
            Code(
                f"""\
from idecode_core.plots.evaluation import methods_side_by_side
from idecode_core.evaluation.side_by_side import side_by_side

rows = side_by_side(
    calibration,
    id_set,
    ood_sets,
    n={shown.n},
    aggregate={shown.aggregate!r},
    dataset={dataset!r},
    transforms={transforms!r},
)
for row in rows:
    print(f"{{row.label:20}} {{row.method:10}} AUROC {{row.auroc.mean:.4f}}  TNR {{row.tnr.mean:.4f}}")
methods_side_by_side(rows, "auroc")"""
            ),
            *as_on_the_page(
                {
                    f"[row.{metric}.mean for row in rows]": [getattr(row, metric).mean for row in shown.rows]
                    for metric in ("auroc", "tnr")
                },
                rtol=1e-9,
            ),
        ]
    )


def _own_scores(shown: Evaluated, folder: str, calibration: "Calibration | None") -> list[Cell]:
    """Scores of a visitor's own files, which a detector's calibration goes with, or from a file, which may bring its own."""
    (ood_set,) = shown.ood_sets
    arrays: dict[str, NDArray[Any]] = {"iD": shown.id_set.score_vectors, "OOD": ood_set.score_vectors}
    if calibration is None:
        ranked_among = "calibration = None  # raw scores are ranked in place of p-values"
    elif folder:
        ranked_among = calibration_cell(folder, calibration)
    else:
        arrays["calibration"] = calibration.score_vectors
        ranked_among = (
            "from idecode_core.conformal.calibration import Calibration\n\n"
            'calibration = Calibration(arrays["calibration"])'
        )
    sets = f"""\
from idecode_core.folder.scores import ScoreSet

id_set = ScoreSet({shown.id_set.name!r}, {shown.id_set.label!r}, False, arrays["iD"])
ood_sets = [ScoreSet({ood_set.name!r}, {ood_set.label!r}, True, arrays["OOD"])]"""
    return [Code(arrays_cell(arrays)), Code(sets), Code(ranked_among)]
