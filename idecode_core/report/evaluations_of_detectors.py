"""Several detectors on one OOD set, as the Evaluate page shows them: a report, and a notebook that computes it again."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from idecode_core.report.content import Figure, Report, Value
from idecode_core.report.evaluations import rates
from idecode_core.report.notebook import Code, opening, to_notebook
from idecode_core.report.steps import as_on_the_page

if TYPE_CHECKING:
    from idecode_core.evaluation.detectors import DetectorOnSet


def detectors_report(rows: "Sequence[DetectorOnSet]", aggregate: str, figure: Any, caption: str) -> Report:
    """One row per detector; every rate is 0 to 1."""
    first = rows[0]
    return Report(
        title=f"Detectors on {first.ood_label}",
        sentences=(
            "AUROC is the chance that an OOD point is stranger than an iD point, with its 95% interval (DeLong); TNR is the share "
            "of OOD points detected when 90% of the iD points are kept, FPR the share let through when 95% are kept.",
            "Every rate is from 0 to 1. Caught and false alarms are the shares flagged at epsilon, in the first run of draws.",
        ),
        settings={"OOD set": first.ood_label, "epsilon": first.point.epsilon, "aggregate": aggregate},
        rows=tuple(_row(row) for row in rows),
        figures=(Figure(figure, caption),),
    )


def _row(row: "DetectorOnSet") -> dict[str, Value]:
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
) -> str:
    """`folders` are the names of the detectors' folders, or of stored rivals, with the n used for each, in the order of the rows."""
    epsilon = rows[0].point.epsilon
    return to_notebook(
        [
            *opening(
                f"Detectors on {rows[0].ood_label}",
                "This notebook computes again what the Evaluate page showed of several detectors.",
            ),
            Code(
                f"""\
from idecode_core.evaluation.detectors import detector_on_set
from idecode_core.evaluation.rivals import open_scores
from idecode_core.plots.evaluation import detector_curves

rows = []
for name, n in {dict(folders)!r}.items():
    stored = open_scores(name)
    ood_set = next(one for one in stored.ood_sets if one.name == {ood_set!r})
    rows.append(
        detector_on_set(stored.title, stored.calibration, stored.id_set, ood_set, n, {epsilon!r}, {aggregate!r})
    )
for row in rows:
    print(f"{{row.detector:24}} AUROC {{row.auroc.mean:.4f}}  TNR {{row.tnr.mean:.4f}}  caught {{row.point.ood_share:.4f}}")
detector_curves([row.curve for row in rows], [row.point.on_roc for row in rows], {epsilon!r})"""
            ),
            *as_on_the_page(
                {
                    "[row.auroc.mean for row in rows]": [row.auroc.mean for row in rows],
                    "[row.point.ood_share for row in rows]": [row.point.ood_share for row in rows],
                },
                rtol=1e-9,
            ),
        ]
    )
