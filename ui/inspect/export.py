"""The batch of the Inspect page as files to keep."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idecode_core.audio.scorer import InspectedSound, TakesSounds
from idecode_core.conformal.judge import Verdict, p_by_n
from idecode_core.detector import Detector
from idecode_core.folder.settings import FolderSettings
from idecode_core.plots import inspect
from idecode_core.quality.strength import power, power_sentence
from idecode_core.report import (
    Inspection,
    Picture,
    Report,
    inspect_batch,
    inspection_files,
    inspection_notebook,
    inspection_report,
)
from idecode_core.report.content import Figure
from idecode_core.report.why import parts
from idecode_core.scorer import Inspected
from ui.frame.cache import session_store
from ui.frame.export import download_row, pin_judgement, pinned_runs
from ui.frame.panels import JUDGED, panel
from ui.frame.samples import Sample, png
from ui.frame.scores import MAX_INSPECTED, stored_or_none
from ui.frame.session import keep_button, opened
from ui.frame.settings import Chosen
from ui.inspect.strange import LOOK_FOR_MASKS, map_export, map_key, map_store, masks_figure

MOST_VARIANTS = 60

if TYPE_CHECKING:
    from ui.inspect.verdict import OnScreen


@panel("export", on=(*JUDGED, "rule"))
def export(
    config: FolderSettings,
    detector: Detector,
    samples: Sequence[Sample],
    vectors: NDArray[np.float64],
    screen: "OnScreen",
) -> None:
    """Files, a pinned run or a session of what is on the screen at the click; the figures are those of the chosen row."""

    def inspection() -> Inspection:
        settings = screen.settings
        return inspect_batch(
            detector,
            settings.detector,
            samples,
            vectors,
            screen.judgement,
            n=settings.n,
            aggregate=settings.aggregate,
            smoothed=settings.smoothed,
            seed=settings.seed,
            row=screen.row,
        )

    # Session state is read here, in the page's own thread, and not at the click.
    maps, inspected_before = map_store(), session_store("inspected_store", MAX_INSPECTED)
    stored = stored_or_none(config)

    def report() -> Report:
        row, settings = screen.row, screen.settings
        sample, name = samples[row], samples[row].name
        inspected = inspected_before.get((detector, settings.seed, sample.content_hash))
        mapped = maps.get(map_key(detector, sample, settings))
        return inspection_report(
            inspection(),
            (
                *figures(detector, name, vectors[row], screen.judgement[row], settings),
                *(why_figures(detector, name, inspected, settings.n) if inspected else ()),
                *(map_export(name, mapped) if mapped else ()),
            ),
            power_sentence(
                power(stored, settings.n, settings.epsilon, settings.aggregate) if stored else (),
                settings.epsilon,
            ),
            variants(inspected, settings.n) if inspected else (),
        )

    def beside() -> None:
        pin_judgement(f"{len(samples)} on Inspect", screen.judgement)
        keep_button(config, samples, vectors, screen)

    download_row(
        "inspection",
        report=report,
        notebook=lambda: inspection_notebook(inspection(), inspection_files(inspection(), detector)),
        in_session=(lambda: inspection_notebook(inspection(), {}, "."))
        if is_the_session(config, samples)
        else None,
        key="inspection",
        beside=beside,
    )
    pinned_runs()


def is_the_session(config: FolderSettings, samples: Sequence[Sample]) -> bool:
    """Whether the page shows the open session, so that a notebook in its folder reads it there."""
    session = opened()
    return (
        session is not None
        and session.detector.scorer_sha256 == config.scorer_sha256
        and [entry.content_hash for entry in session.inputs] == [sample.content_hash for sample in samples]
    )


def variants(inspected: Inspected, n: int) -> tuple[Picture, ...]:
    """What the network saw of the input, each with what was done to it and its score."""
    return tuple(
        Picture(png(variant.image), f"{variant.applied}, score {variant.score:.3g}")
        for variant in inspected.variants
        if variant.draw < n
    )[:MOST_VARIANTS]


def figures(
    detector: Detector, name: str, vector: NDArray[np.float64], verdict: Verdict, settings: Chosen
) -> tuple[Figure, ...]:
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


def why_figures(detector: Detector, name: str, inspected: Inspected, n: int) -> tuple[Figure, ...]:
    """The parts of the strangest draw, and of a sound the masks that moved the score."""
    draw = int(np.argmax(inspected.score_vector[:n]))
    pieces = parts(detector.scorer, inspected, draw)
    shown: list[Figure] = []
    if len(pieces) > 1:
        in_words = "; ".join(f"{part.name}: {part.words}" for part in pieces)
        shown.append(
            Figure(
                inspect.score_parts([part.name for part in pieces], [part.value for part in pieces]),
                f"{name}: why its strangest draw, number {draw + 1}, scores {inspected.score_vector[draw]:.3g}. {in_words}.",
            )
        )
    if isinstance(inspected, InspectedSound) and isinstance(detector.scorer, TakesSounds):
        shown.append(
            Figure(
                masks_figure(detector, inspected), f"{name}: which masks moved the score. {LOOK_FOR_MASKS}"
            )
        )
    return tuple(shown)
