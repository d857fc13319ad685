"""A detector of a user's own data on one page: what it was made of, how good it is, and where it is weak."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.evaluation.own_data import EPSILON, N, OwnResult, own_result
from idecode_core.files import write_text
from idecode_core.folder.stored import Stored, open_stored
from idecode_core.folder.training_record import TrainingRecord
from idecode_core.plots.histograms import Group, score_histograms
from idecode_core.plots.style import CALIBRATION, ID, OOD
from idecode_core.report.content import Figure, Report, Row, Value
from idecode_core.report.html import to_html

HELD_AGAINST = 3  # figures; the table has all sets


def own_training_words(record: TrainingRecord) -> str:
    """How a detector of a user's own data was made, for its card."""
    settings = record.settings
    classes = settings.get("class_names", [])
    kinds = f" in {len(classes)} classes ({', '.join(classes[:10])})" if classes else ""
    left_out = "".join(
        f"; {settings[key]:,} {words}"
        for key, words in (("broken", "could not be read"), ("copies", "were copies"))
        if settings.get(key)
    )
    left_out += " (`left-out.txt`)" if left_out else ""
    accuracy = ""
    if record.validation_accuracy is not None:
        accuracy = f" Of the validation files {100 * record.validation_accuracy:.1f} % are named right."
    unseen = "".join(
        f"\n- {name}: AUROC {100 * value:.1f} %" for name, value in settings.get("left_out", {}).items()
    )
    if unseen:
        unseen = f"\n\nFitted without one class, how strange are its validation files?\n{unseen}"
    origin = ""
    if record.task == "features":
        origin = (
            " **The network, EfficientNet-Lite0, was trained on ImageNet before**, which has seen much of what may be OOD "
            "here, and it was not changed."
        )
    return (
        f"{settings['plan']}{origin}{accuracy}\n\nThe files: {settings['files']:,} different ones{kinds} from "
        f"`{Path(settings['source']).name}`{left_out}. Random split, seed {record.seed}: {record.proper_training_points:,} to fit, "
        f"{record.validation_points:,} to validate, {record.calibration_points:,} to calibrate, {record.test_points:,} to test; "
        f"`files.csv` has each with its part and the hash of its content. Made on {record.machine} in "
        f"{60 * record.hours:.1f} minutes.{unseen}"
    )


def own_report(stored: Stored) -> Report:
    """The whole page."""
    result, record = own_result(stored), stored.training
    rate = result.false_detections
    sentences = [
        f"What belongs: {stored.settings.summary}.",
        f"At most {EPSILON:.0%} of files like yours are flagged at epsilon = {EPSILON:g}, on average over calibration sets. Of the "
        f"{len(stored.id_set):,} test files it was {rate.rate:.1%} (expected between {rate.low:.0%} and {rate.high:.0%} in 99 of "
        "100 cases).",
        *(result.weak or ("Nothing looks weak against the sets below.",)),
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
    for one in stored.ood_sets[:HELD_AGAINST]:
        groups = [
            Group("calibration", known, CALIBRATION),
            Group("your test files", _sums(stored.id_set.score_vectors), ID),
            Group(one.label, _sums(one.score_vectors), OOD),
        ]
        figures.append(
            Figure(
                score_histograms(
                    groups,
                    threshold=stored.calibration.threshold(N, EPSILON),
                    threshold_label=f"epsilon = {EPSILON:g}",
                ),
                f"Scores of your test files and of {one.label}: what lies right of the line is flagged.",
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


def _rows(result: OwnResult) -> Sequence[Row]:
    return [
        {
            "what does not belong": one.label,
            "points": one.points,
            "AUROC in percent": round(100 * one.auroc, 1),
            f"detected at {EPSILON:g}, in percent": round(100 * one.detected, 1),
        }
        for one in result.against
    ]


def write_own_report(folder: Path) -> OwnResult:
    """report.html into a detector folder; the result that it shows."""
    stored = open_stored(folder)
    write_text(folder / "report.html", to_html(own_report(stored)))
    return own_result(stored)
