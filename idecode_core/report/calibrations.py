"""What the Calibrate page shows, as a report and as a notebook; and the card of the detector that is saved."""

from typing import TYPE_CHECKING, Any

from idecode_core.report.content import Figure, Report, Row, Value
from idecode_core.report.notebook import Code, opening, to_notebook
from idecode_core.report.sources import arrays_cell, calibration_cell
from idecode_core.report.steps import as_on_the_page

if TYPE_CHECKING:
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.detector import Detector
    from idecode_core.evaluation.recalibrated import Lost
    from idecode_core.guarantees.same_source import SourceComparison


def calibration_card(
    name: str,
    shipped: "Detector",
    own: "Calibration",
    comparison: "SourceComparison",
    n: int,
    *,
    belongs: str,
    lost: "Lost",
) -> str:
    """card.md of a detector that was calibrated again: what belongs, who the parent is, and what was lost."""
    rows = "".join(
        f"| {row['set']} | {row['parent_catches']} | {row['still_caught']} |\n" for row in lost_rows(lost)
    )
    return (
        f"# {name}\n\n"
        f"What belongs: {belongs}.\n\n"
        f"Parent: {shipped.name} (in-distribution there: {shipped.summary or 'see its card'}). The model is the parent's, calibrated "
        f"again on {own.k:,} files with up to {own.n_max} draws each (seed {own.seed}).\n\n"
        f"The bound on false detections holds for inputs like those files. Recalibrating repairs false alarms, not detection.\n\n"
        f"## What was lost\n\n"
        f"At epsilon = {lost.epsilon:g}, n = {n}. {lost.reading()}\n\n"
        f"| set | parent | this detector |\n|---|---|---|\n{rows}\n"
        f"## Against the parent's calibration set\n\n"
        f"{shipped.calibration.k:,} points, n = {n}: {comparison.reading()}\n"
    )


def lost_rows(lost: "Lost") -> list[Row]:
    """One row per set: how many of how many were flagged, before and after."""
    return [
        {
            "set": catch.label,
            "parent_catches": f"{catch.before} of {catch.total}",
            "still_caught": f"{catch.after} of {catch.total}",
        }
        for catch in lost.catches
    ]


def calibration_report(
    name: str,
    comparison: "SourceComparison",
    names: list[str],
    scores: list[float],
    shipped_p_values: list[float],
    settings: dict[str, Value],
    figure: Any,
    caption: str,
    lost: "Lost | None" = None,
) -> Report:
    """One row per file: its score, and its p-value under the shipped calibration; and what was lost, as a sentence."""
    rows: tuple[Row, ...] = tuple(
        {"name": file, "score": score, "p_value_under_the_shipped_calibration": p}
        for file, score, p in zip(names, scores, shipped_p_values, strict=True)
    )
    return Report(
        title=f"{len(names):,} files as a calibration set for {name}",
        sentences=(
            comparison.reading(),
            f"Kolmogorov-Smirnov p = {comparison.ks_p_value:.3g}, Mann-Whitney p = {comparison.rank_p_value:.3g}; a new file is "
            f"stranger than a shipped one {comparison.stranger:.1%} of the time.",
            *(
                (f"What was lost at epsilon = {lost.epsilon:g}: {lost.reading()} " + _by_set(lost),)
                if lost
                else ()
            ),
        ),
        settings=settings,
        rows=rows,
        figures=(Figure(figure, caption),),
    )


def _by_set(lost: "Lost") -> str:
    rows = (f"{row['set']} {row['parent_catches']}, now {row['still_caught']}" for row in lost_rows(lost))
    return f"By set: {'; '.join(rows)}."


def calibration_notebook(
    folder: str,
    shipped: "Calibration",
    own: "Calibration",
    comparison: "SourceComparison",
    n: int,
    aggregate: str,
) -> str:
    """Holds the new score vectors, reads the shipped ones and asserts the comparison of the page."""
    return to_notebook(
        [
            *opening(
                f"{own.k:,} files as a calibration set",
                "This notebook computes the comparison of the Calibrate page again. The score vectors of the files are inside it.",
            ),
            Code(calibration_cell(folder, shipped)),
            Code(arrays_cell({"own": own.score_vectors})),
            Code(
                f"""\
from idecode_core.conformal.calibration import Calibration
from idecode_core.guarantees.same_source import compare
from idecode_core.plots.histograms import Group, score_histograms
from idecode_core.plots.style import CALIBRATION, ID

n, aggregate = {n}, {aggregate!r}
own = Calibration(arrays["own"], seed={own.seed})
comparison = compare(own.scores(n, aggregate), calibration.scores(n, aggregate))
print(comparison.reading())
groups = [
    Group("shipped calibration", calibration.scores(n, aggregate), CALIBRATION),
    Group("new files", own.scores(n, aggregate), ID),
]
score_histograms(groups)"""
            ),
            *as_on_the_page({f"comparison.{name}": value for name, value in vars(comparison).items()}),
        ]
    )
