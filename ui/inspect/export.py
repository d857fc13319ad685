"""The batch of the Inspect page as files to keep."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idecode_core.conformal.judge import Verdict, p_by_n
from idecode_core.report import Inspection, Report, inspect_batch, inspection_notebook, inspection_report
from idecode_core.report.content import Figure
from ui.frame.export import download_row
from ui.frame.samples import Sample
from ui.frame.settings import Settings

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from ui.inspect.panels import OnScreen


def export(
    detector: "Detector", samples: Sequence[Sample], vectors: NDArray[np.float64], screen: "OnScreen"
) -> None:
    """Download buttons for what is on the screen at the click; the figures are those of the chosen row."""

    def inspection() -> Inspection:
        settings = screen.settings
        return inspect_batch(
            detector,
            settings.detector,
            samples,
            vectors,
            screen.found,
            n=settings.n,
            aggregate=settings.aggregate,
            smoothed=settings.smoothed,
            seed=settings.seed,
        )

    def report() -> Report:
        row = screen.row
        return inspection_report(
            inspection(),
            figures(detector, samples[row].name, vectors[row], screen.found[row], screen.settings),
        )

    download_row(
        "inspection", report=report, notebook=lambda: inspection_notebook(inspection()), key="inspection"
    )


def figures(
    detector: "Detector", name: str, vector: NDArray[np.float64], verdict: Verdict, settings: Settings
) -> tuple[Figure, ...]:
    from idecode_core.plots import inspect

    calibration = detector.calibration
    scores = calibration.scores(settings.n, settings.aggregate)
    return (
        Figure(
            inspect.aggregate_on_histogram(scores, verdict.score, verdict.threshold, is_ood=verdict.is_ood),
            f"{name}: its score among the calibration scores. What lies beyond the dashed line is flagged.",
        ),
        Figure(
            inspect.draw_scores(vector[: settings.n], calibration.score_vectors.ravel()),
            f"{name}: each draw on its own, against the middle 90 % of the calibration set's.",
        ),
        Figure(
            inspect.p_as_n_grows(
                p_by_n(calibration, vector, settings.aggregate), settings.epsilon, settings.n
            ),
            f"{name}: the p-value with more transforms. If it still wanders at the right, use more.",
        ),
    )
