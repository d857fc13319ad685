"""What the Evaluate page shows, as a report and as a notebook that computes it again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from idecode_core.report.content import Figure, Report, Value
from idecode_core.report.notebook import HOME, Cell, Code, Text, to_notebook
from idecode_core.report.score_cells import STORED_SETS, arrays_cell, calibration_cell

if TYPE_CHECKING:
    from idecode_core.calibration import Calibration
    from idecode_core.evaluation import ScoreSet
    from idecode_core.side_by_side import Row


def evaluation_report(
    name: str,
    id_set: "ScoreSet",
    ood_sets: "Sequence[ScoreSet]",
    rows: "Sequence[Row]",
    n: int,
    aggregate: str,
    figure: Any,
    caption: str,
) -> Report:
    """One row for each method and OOD set; rates from 0 to 1, the paper's numbers in percent, as it prints them."""
    settings: dict[str, Value] = {
        "evaluated": name,
        "iD set": f"{id_set.label} ({len(id_set):,} points)",
        "OOD sets": ", ".join(f"{ood_set.label} ({len(ood_set):,})" for ood_set in ood_sets),
        "n": n,
        "aggregate": aggregate,
        "runs": max(len(row.auroc.values) for row in rows),
    }
    return Report(
        title=f"How well {name} tells {id_set.label} from other data",
        sentences=(
            "AUROC is the chance that an OOD point is stranger than an iD point. TNR is the share of OOD points that are "
            "detected when 90% of the iD points are kept.",
            "Numbers are means over independent runs of random transforms, with the standard deviation from run to run.",
        ),
        settings=settings,
        rows=tuple(_row(row) for row in rows),
        figures=(Figure(figure, caption),),
    )


def _row(row: "Row") -> dict[str, Value]:
    return {
        "ood_set": row.label,
        "method": row.method,
        "n": row.n,
        "auroc": row.auroc.mean,
        "auroc_spread": row.auroc.spread,
        "tnr_at_90_tpr": row.tnr.mean,
        "tnr_spread": row.tnr.spread,
        "paper_auroc_percent": row.paper_auroc.mean if row.paper_auroc else None,
        "paper_tnr_percent": row.paper_tnr.mean if row.paper_tnr else None,
    }


def evaluation_notebook(
    name: str,
    id_set: "ScoreSet",
    ood_sets: "Sequence[ScoreSet]",
    rows: "Sequence[Row]",
    n: int,
    aggregate: str,
    folder: str,
    calibration: "Calibration | None",
    dataset: str,
    transforms: str,
    stored: bool,
) -> str:
    """Stored scores are read from the detector's folder; a visitor's own are inside the notebook."""
    cells: list[Cell] = [
        Text(
            f"# How well {name} tells {id_set.label} from other data\n\nThis notebook computes the table of the Evaluate page "
            "again. Run it from top to bottom. It stops at the first difference."
        ),
        Code(HOME),
        Text("## The scores"),
    ]
    if folder and calibration is not None:
        cells.append(Code(calibration_cell(folder, calibration)))
    if stored:
        cells.append(Code(STORED_SETS))
    else:
        arrays: dict[str, NDArray[Any]] = {"iD": id_set.score_vectors, "OOD": ood_sets[0].score_vectors}
        if calibration is not None and not folder:
            arrays["calibration"] = calibration.score_vectors
        cells += [
            Code(arrays_cell(arrays)),
            Code(_own_sets(id_set, ood_sets[0], calibration is not None and not folder)),
        ]
        if calibration is None:
            cells.append(Code("calibration = None  # raw scores are ranked in place of p-values"))
    shown = [row.auroc.mean for row in rows]
    cells += [
        Text("## Base score, ICAD and iDECODe side by side"),
        Code(
            f"""\
from idecode_core.plots.evaluation import methods_side_by_side
from idecode_core.side_by_side import side_by_side

rows = side_by_side(
    calibration, id_set, ood_sets, n={n}, aggregate={aggregate!r}, dataset={dataset!r}, transforms={transforms!r}
)
for row in rows:
    print(f"{{row.label:20}} {{row.method:10}} AUROC {{row.auroc.mean:.4f}}  TNR {{row.tnr.mean:.4f}}")
methods_side_by_side(rows, "auroc")"""
        ),
        Text("## As on the page?"),
        Code(
            f"""\
import numpy as np

np.testing.assert_allclose([row.auroc.mean for row in rows], {shown!r}, rtol=1e-9)
np.testing.assert_allclose([row.tnr.mean for row in rows], {[row.tnr.mean for row in rows]!r}, rtol=1e-9)
print("As on the page.")"""
        ),
    ]
    return to_notebook(cells)


def _own_sets(id_set: "ScoreSet", ood_set: "ScoreSet", with_calibration: bool) -> str:
    lines = [
        "from idecode_core.evaluation import ScoreSet",
        "",
        f'id_set = ScoreSet({id_set.name!r}, {id_set.label!r}, False, arrays["iD"])',
        f'ood_sets = [ScoreSet({ood_set.name!r}, {ood_set.label!r}, True, arrays["OOD"])]',
    ]
    if with_calibration:
        lines += [
            "",
            "from idecode_core.calibration import Calibration",
            "",
            'calibration = Calibration(arrays["calibration"])',
        ]
    return "\n".join(lines)
