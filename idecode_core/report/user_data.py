"""A detector of a user's own data on one page: what it was made of, how good it is, and where it is weak."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.files import write_text
from idecode_core.folder.record import TrainingRecord
from idecode_core.folder.stored import Stored
from idecode_core.plots.histograms import Group, score_histograms
from idecode_core.plots.style import CALIBRATION, ID, OOD
from idecode_core.quality.user_data import EPSILON, N, UserResult, user_result
from idecode_core.report.content import Figure, Report, Row, Value
from idecode_core.report.html import to_html
from idecode_core.report.tables import table

HELD_AGAINST = 3  # figures; the table has all sets


def user_training_words(record: TrainingRecord) -> str:
    """How a detector of a user's own data was made, for its card."""
    settings = record.settings
    classes = settings.get("class_names", [])
    kinds = f" in {len(classes)} classes ({', '.join(classes[:10])})" if classes else ""
    left_out = f"; {settings['copies']:,} of them are copies of others, in one part with these" * bool(
        settings.get("copies")
    )
    left_out += f"; {settings['broken']:,} more could not be read (`left-out.txt`)" * bool(
        settings.get("broken")
    )
    accuracy = "".join(
        f" Of the {part} files {100 * share:.1f} % are named right."
        for part, share in (
            ("validation", record.validation_accuracy),
            ("calibration", record.calibration_accuracy),
        )
        if share is not None
    )
    unseen = "".join(
        f"\n- {name}: AUROC {100 * value:.1f} %" for name, value in settings.get("left_out", {}).items()
    )
    if unseen:
        unseen = f"\n\nFitted without one class, how strange are its held-out files?\n{unseen}"
    choice = f" {settings['choice']}" if settings.get("choice") else ""
    origin = ""
    if record.task == "features":
        origin = (
            " **The network, EfficientNet-Lite0, was trained on ImageNet before**, which has seen much of what may be OOD "
            "here, and it was not changed."
        )
    return (
        f"{settings['plan']}{origin}{choice}{accuracy}\n\nThe files: {settings['files']:,}{kinds} from "
        f"`{Path(settings['source']).name}`{left_out}. Random split, seed {record.seed}: {record.proper_training_points:,} to fit, "
        f"{record.validation_points:,} to validate, {record.calibration_points:,} to calibrate, {record.test_points:,} to test; "
        f"`files.csv` has each with its part and the hash of its content. Made on {record.machine} in "
        f"{60 * record.hours:.1f} minutes.{unseen}"
    )


def user_numbers(result: UserResult, command: str) -> str:
    """How good it is, for its card: each AUROC with the interval that says how sure it is."""
    rate = result.false_detections
    titles = [
        "what does not belong",
        "points",
        "AUROC in percent",
        "95 % interval",
        f"% detected at {EPSILON:g}",
    ]
    rows = [[str(value) for value in row.values()] for row in _rows(result)]
    return (
        f"{result.tested:,} test files, n = {N}. The interval (DeLong) is about the test points: with others of the same kind, the "
        f"AUROC lies in such an interval in 95 of 100 cases.\n\n{table(titles, rows)}\n\n"
        f"Of the test files {rate.rate:.1%} are flagged at epsilon = {rate.epsilon:g} (expected between {rate.low:.0%} and "
        f"{rate.high:.0%} in 99 of 100 cases).\n\n{command}"
    )


def user_report(stored: Stored, result: UserResult | None = None) -> Report:
    """The whole page."""
    result, record = result or user_result(stored), stored.training
    rate = result.false_detections
    sentences = [
        f"What belongs: {stored.settings.summary}.",
        f"At most {EPSILON:.0%} of files like yours are flagged at epsilon = {EPSILON:g}, on average over calibration sets. Of the "
        f"{len(stored.id_set):,} test files it was {rate.rate:.1%} (expected between {rate.low:.0%} and {rate.high:.0%} in 99 of "
        "100 cases).",
        *([str(record.settings["choice"])] if record and record.settings.get("choice") else []),
        *((*result.failure, *result.weak) or ("Nothing looks weak against the sets below.",)),
    ]
    settings: dict[str, Value] = {
        "detector": stored.settings.name,
        "calibration files": stored.calibration.k,
        "n": N,
        "epsilon": EPSILON,
        "model": str(record.settings.get("plan", "")) if record else "",
    }
    known = stored.calibration.scores(N)
    figures = []
    for ood_set in stored.ood_sets[:HELD_AGAINST]:
        groups = [
            Group("calibration", known, CALIBRATION),
            Group("your test files", _sums(stored.id_set.score_vectors), ID),
            Group(ood_set.label, _sums(ood_set.score_vectors), OOD),
        ]
        figures.append(
            Figure(
                score_histograms(
                    groups,
                    threshold=stored.calibration.threshold(N, EPSILON),
                    threshold_label=f"epsilon = {EPSILON:g}",
                ),
                f"Scores of your test files and of {ood_set.label}: what lies right of the line is flagged.",
            )
        )
    return Report(
        title=f"{stored.settings.name}: a detector of your own data",
        sentences=tuple(sentences),
        settings=settings,
        rows=tuple(_rows(result)),
        figures=tuple(figures),
    )


def _sums(score_vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """F of the first run: (N,)."""
    total: NDArray[np.float64] = score_vectors[:, :N].astype(np.float64).sum(axis=1)
    return total


def _rows(result: UserResult) -> Sequence[Row]:
    return [
        {
            "what does not belong": separation.label,
            "points": separation.points,
            "AUROC in percent": round(100 * separation.auroc, 1),
            "its 95 % interval": " to ".join(f"{100 * end:.1f}" for end in separation.interval),
            f"detected at {EPSILON:g}, in percent": round(100 * separation.detected, 1),
        }
        for separation in result.against
    ]


def write_user_report(stored: Stored, result: UserResult) -> None:
    """report.html into the detector's folder."""
    write_text(stored.folder / "report.html", to_html(user_report(stored, result)))
