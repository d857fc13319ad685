"""What the Calibrate page shows, as a report and as a notebook; and the card of the detector that is saved."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from idecode_core.conformal.settings import Settings
from idecode_core.report.content import Figure, Report, Row, Value, command
from idecode_core.report.notebook import Notebook, from_template

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.conformal.same_source import SourceComparison
    from idecode_core.detector import Detector
    from idecode_core.quality.user_data import Lost
    from idecode_core.session.making import File


def calibration_card(
    name: str,
    shipped: "Detector",
    new: "Calibration",
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
        f"again on {new.k:,} files with up to {new.n_max} draws each (seed {new.seed}).\n\n"
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
    lost: "Lost",
) -> Report:
    """One row per file: its score, and its p-value under the shipped calibration; and what was lost, as a sentence."""
    rows: tuple[Row, ...] = tuple(
        {"name": file, "score": score, "p_value_under_the_shipped_calibration": p}
        for file, score, p in zip(names, scores, shipped_p_values, strict=True)
    )
    options = {
        "--detector": settings.get("folder", name), "--out": settings.get("new name") or "mine",
        "--n-max": settings.get("n_max"), "--seed": settings.get("seed"),
    }  # fmt: skip
    by_set = (f"{row['set']} {row['parent_catches']}, now {row['still_caught']}" for row in lost_rows(lost))
    return Report(
        title=f"{len(names):,} files as a calibration set for {name}",
        sentences=(
            comparison.reading(),
            f"Kolmogorov-Smirnov p = {comparison.ks_p_value:.3g}, Mann-Whitney p = {comparison.rank_p_value:.3g}; a new file is "
            f"stranger than a shipped one {comparison.stranger:.1%} of the time.",
            f"What was lost at epsilon = {lost.epsilon:g}: {lost.reading()} By set: {'; '.join(by_set)}.",
        ),
        settings=settings,
        rows=rows,
        figures=(Figure(figure, caption),),
        commands=(command("calibrate", "FOLDER", **options),),
    )


def calibration_notebook(
    detector: "Detector",
    files: "Sequence[File]",
    new: "Calibration",
    p_values: "Sequence[float]",
    comparison: "SourceComparison",
    sets: "Mapping[str, FloatArray]",
    lost: "Lost",
    settings: Settings,
) -> Notebook:
    """The files and their score vectors are in the session beside it, those of the `sets` that do not belong in an npz; it asserts
    the comparison of the page, and what was lost."""
    from idecode_core.report.inspection import session_files

    return from_template(
        "calibration",
        f"{new.k:,} files as a calibration set",
        {
            "session": "session",
            "arrays": "calibration.npz",
            "sets": list(sets),
            "n": settings.n,
            "epsilon": settings.epsilon,
            "aggregate": settings.aggregate,
            "seed": new.seed,
        },
        {
            "comparison": vars(comparison),
            "caught": {catch.label: [catch.before, catch.after] for catch in lost.catches},
        },
        arrays={f"set_{i}": vectors for i, vectors in enumerate(sets.values())},
        files=session_files(detector, settings, files, new.score_vectors, np.array(p_values)),
    )
