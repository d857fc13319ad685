"""The batch of the Inspect page as files to keep."""

import numpy as np

from idecode_core.audio.scorer import InspectedSound, TakesSounds
from idecode_core.conformal.judge import p_by_n
from idecode_core.detector import Detector
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
from ui.frame.samples import png
from ui.frame.scores import MAX_INSPECTED, stored_or_none
from ui.frame.session import keep_button, opened
from ui.inspect.batch import Batch
from ui.inspect.strange import LOOK_FOR_MASKS, map_export, map_key, map_store, masks_figure

MOST_VARIANTS = 60


@panel("export", on=(*JUDGED, "rule"))
def export(batch: Batch) -> None:
    """Files, a pinned run or a session of what is on the screen at the click; the figures are those of the chosen row."""

    def inspection() -> Inspection:
        settings = batch.settings
        return inspect_batch(
            batch.detector,
            settings.detector,
            batch.samples,
            batch.vectors,
            batch.judgement,
            n=settings.n,
            aggregate=settings.aggregate,
            smoothed=settings.smoothed,
            seed=settings.seed,
            row=batch.row,
        )

    # Session state is read here, in the page's own thread, and not at the click.
    maps, inspected_before = map_store(), session_store("inspected_store", MAX_INSPECTED)
    stored, detector = stored_or_none(batch.config), batch.detector

    def report() -> Report:
        sample, settings = batch.samples[batch.row], batch.settings
        name = sample.name
        inspected = inspected_before.get((detector, settings.seed, sample.content_hash))
        mapped = maps.get(map_key(detector, sample, settings))
        return inspection_report(
            inspection(),
            (
                *figures(batch),
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
        pin_judgement(f"{len(batch.samples)} on Inspect", batch.judgement)
        keep_button(batch)

    download_row(
        "inspection",
        report=report,
        notebook=lambda: inspection_notebook(inspection(), inspection_files(inspection(), detector)),
        in_session=(lambda: inspection_notebook(inspection(), {}, ".")) if is_the_session(batch) else None,
        key="inspection",
        beside=beside,
    )
    pinned_runs()


def is_the_session(batch: Batch) -> bool:
    """Whether the page shows the open session, so that a notebook in its folder reads it there."""
    session = opened()
    return (
        session is not None
        and session.detector.scorer_sha256 == batch.config.scorer_sha256
        and [entry.content_hash for entry in session.inputs] == [file.content_hash for file in batch.samples]
    )


def variants(inspected: Inspected, n: int) -> tuple[Picture, ...]:
    """What the network saw of the input, each with what was done to it and its score."""
    return tuple(
        Picture(png(variant.image), f"{variant.applied}, score {variant.score:.3g}")
        for variant in inspected.variants
        if variant.draw < n
    )[:MOST_VARIANTS]


def figures(batch: Batch) -> tuple[Figure, ...]:
    calibration, settings, row = batch.detector.calibration, batch.settings, batch.row
    name, vector, verdict = batch.samples[row].name, batch.vectors[row], batch.judgement[row]
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
