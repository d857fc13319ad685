"""Which way fits a visitor's files, and Calibrate: the strangest to look through, so that what does not belong leaves and the bound
stays; the new files against the shipped calibration; what is lost, of what does not belong; and the new detector to use."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal import smallest_epsilon
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.dirty import contamination, label_trim, strangest, what_it_promises
from idecode_core.conformal.judge import judge
from idecode_core.conformal.observed import ObservedRate, counted_rate
from idecode_core.conformal.same_source import SourceComparison, compare
from idecode_core.conformal.settings import Settings
from idecode_core.detector import Detector
from idecode_core.folder.settings import FolderSettings
from idecode_core.modality import modality_named
from idecode_core.plots.histograms import Group, score_histograms
from idecode_core.plots.style import CALIBRATION, ID
from idecode_core.quality.user_data import EPSILON, Lost, N, what_is_lost
from idecode_core.report.calibrations import calibration_notebook, calibration_report
from idecode_core.report.content import Value
from ui.calibrate.train import may_train
from ui.calibrate.use import offer
from ui.frame.export import download_row
from ui.frame.look import show
from ui.frame.messages import escape
from ui.frame.panels import JUDGED, panel
from ui.frame.samples import Sample, data_uri
from ui.frame.scores import score_vectors
from ui.frame.settings import Chosen, current

FEW = 100  # below this many files a caption says what that costs


@panel("calibration", on=JUDGED)
def result(
    config: FolderSettings,
    detector: Detector,
    samples: Sequence[Sample],
    vectors: NDArray[np.float64],
    seed: int,
    outside: Sequence[Sample] = (),
) -> None:
    """Are the new files exchangeable with the shipped calibration? What is lost? Then: the detector to use."""
    settings = current()
    n = min(settings.n, detector.calibration.n_max)
    kept = reviewed(samples, vectors, seed, n, settings)
    samples, vectors = [sample for sample, stays in zip(samples, kept, strict=True) if stays], vectors[kept]
    renewed = Calibration(vectors, seed)
    mine, theirs = renewed.scores(n, settings.aggregate), detector.calibration.scores(n, settings.aggregate)
    comparison = compare(mine, theirs)
    left, right = st.columns([1.9, 1], gap="large")
    with left:
        figure, caption = overlay(renewed, detector, n, settings)
    with right:
        reading(comparison, renewed, detector, vectors[:, :n], settings)
    if outside:
        sets = {USER_SET: score_vectors(detector, outside, seed)}
    else:
        sets = bundled_vectors(config, detector, seed)
    asked = Settings(n, settings.epsilon, None, settings.aggregate, seed, False)
    lost = what_is_lost(
        detector.calibration, renewed, sets, n=n, epsilon=settings.epsilon, aggregate=settings.aggregate
    )
    left, right = st.columns([1, 1.2], gap="large")
    with left:
        show_lost(lost, training=may_train())
    with right:
        name = offer(config, detector, renewed, comparison, n, lost)
    files = ([sample.name for sample in samples], mine.tolist())
    p_values = judge(detector.calibration, vectors, n=n, aggregate=settings.aggregate).p_values.tolist()
    about: dict[str, Value] = {
        "detector": config.name, "folder": config.folder.name, "new name": name, "k": renewed.k, "n": n, "n_max": renewed.n_max,
        "aggregate": settings.aggregate, "seed": seed, **vars(comparison),
    }  # fmt: skip
    download_row(
        "calibration",
        report=lambda: calibration_report(
            config.name, comparison, *files, p_values, about, figure, caption, lost
        ),
        notebook=lambda: calibration_notebook(
            detector, samples, renewed, p_values, comparison, sets, lost, asked
        ),
        key="cal_export",
    )


def overlay(renewed: Calibration, detector: Detector, n: int, settings: Chosen) -> tuple[Any, str]:
    groups = [
        Group("shipped calibration", detector.calibration.scores(n, settings.aggregate), CALIBRATION),
        Group("your files", renewed.scores(n, settings.aggregate), ID),
    ]
    figure = score_histograms(
        groups,
        renewed.threshold(n, settings.epsilon, settings.aggregate),
        f"your threshold at epsilon = {settings.epsilon:g}",
        height=400,
    )
    caption = (
        "Blue over grey: your files look like the shipped calibration set to this detector. Blue further right: they are "
        "stranger to it."
    )
    show(figure, key="cal_overlay", look_for=caption)
    return figure, caption


def reading(
    comparison: SourceComparison,
    renewed: Calibration,
    detector: Detector,
    vectors: NDArray[np.float64],
    settings: Chosen,
) -> None:
    """The comparison in words."""
    colour, icon = ("orange", "difference") if comparison.differs() else ("blue", "check_circle")
    first, _, rest = comparison.reading().partition(". ")
    st.markdown(f"## :{colour}[:material/{icon}: {first}]")
    st.markdown(rest)
    judged = judge(detector.calibration, vectors, epsilon=settings.epsilon, aggregate=settings.aggregate)
    seen = counted_rate(int(judged.is_ood.sum()), len(judged), settings.epsilon)
    st.markdown(
        f"The shipped calibration would flag **{seen.flagged:,} of your {seen.total:,}** files at epsilon = {settings.epsilon:g} "
        f"({seen.rate:.1%}; for files that belong expect about {settings.epsilon:.1%})."
    )
    st.caption(
        f"Kolmogorov-Smirnov p = {comparison.ks_p_value:.3g} · Mann-Whitney p = {comparison.rank_p_value:.3g} · "
        f"k = {renewed.k:,}, smallest usable epsilon = {smallest_epsilon(renewed.k):.3g}"
        + (
            ". With so few files the rate of a single calibration set varies much; bring more."
            if renewed.k < FEW
            else ""
        )
    )


SHOWN = 20
FEWEST = 3  # files; of two, both would be the strangest


def reviewed(
    samples: Sequence[Sample], vectors: NDArray[np.float64], seed: int, n: int, settings: Chosen
) -> NDArray[np.bool_]:
    """Which of the files calibrate: all but those among the strangest that the visitor says do not belong (k,)."""
    if len(samples) < FEWEST:
        return np.ones(len(samples), dtype=np.bool_)
    scores = Calibration(vectors, seed).scores(n, settings.aggregate)
    dirt, m = contamination(scores), min(SHOWN, len(samples) - 1)
    places = [int(i) for i in strangest(scores, m)]
    if dirt.suspected:
        st.warning(dirt.reading(), icon=":material/cleaning_services:")
    with st.expander(
        f"Do all of them belong? The {m} strangest",
        expanded=dirt.suspected,
        icon=":material/cleaning_services:",
    ):
        chosen = st.pills(
            "Choose those that do not belong: arrow keys go from one to the next, the space bar chooses.",
            places,
            selection_mode="multi",
            format_func=lambda i: f"![{escape(samples[i].name)}]({data_uri(samples[i].thumbnail)})",
            key="cal_review",
            wrap=True,
        )
        kept: NDArray[np.bool_] = label_trim(scores, m, chosen)
        if len(chosen):
            st.caption(what_it_promises(int(kept.sum()), len(chosen), m, settings.epsilon))
        else:
            st.caption(
                "Strange is not foreign: what belongs stays, however strange. Taking it out would break the bound."
            )
    return kept


Vectors = dict[str, NDArray[np.float64]]
Key = tuple[str, str, int, int]
MOST = 24  # detectors and seeds
TRIED = 20  # files that say which way fits
TRAIN, CALIBRATE = "Train", "Calibrate"
WAY = "way"
USER_SET = "what you brought"


def first_look(detector: Detector, files: Sequence[Sample], seed: int) -> ObservedRate:
    """How many of a few files the detector as it is finds strange."""
    vectors = score_vectors(detector, files, seed)
    n = min(N, detector.calibration.n_max)
    flagged = int(judge(detector.calibration, vectors, n=n, epsilon=EPSILON).is_ood.sum())
    return counted_rate(flagged, len(files), EPSILON)


def which_fits(config: FolderSettings, seen: ObservedRate) -> str:
    """The way that fits, and a sentence on why."""
    name, of = escape(config.folder.name), f"{seen.flagged} of {seen.total}"
    if seen.low > EPSILON:
        st.info(
            f"**Train** fits: {name} finds {of} of your files strange, where it should be about 1 in 20. It does not know what you "
            "brought, and calibrating would only make it look away: few false alarms, and little caught.",
            icon=":material/model_training:",
        )
        return TRAIN
    st.info(
        f"**Calibrate** fits: {name} finds {of} of your files strange, about as many as of its own. It knows what you brought; "
        "your files make the bound hold for your source. Train makes a detector of your files alone.",
        icon=":material/tune:",
    )
    return CALIBRATE


@st.cache_resource(show_spinner=False)
def _scored() -> dict[Key, Vectors]:
    """For all visitors: bundled samples, nothing of theirs."""
    return {}


def bundled_vectors(config: FolderSettings, detector: Detector, seed: int) -> Vectors:
    """Label -> V at n_max of bundled samples; the model runs once for each detector and seed."""
    store, n_max = _scored(), detector.calibration.n_max
    # Also where nothing is scored: what stands below keeps its place, and half-typed words with it.
    place = st.empty()
    key = (config.scorer_sha256, config.dataset, seed, n_max)
    if key in store:
        return store[key]
    sets = modality_named(config.modality).bundled(config.dataset)
    total, finished = sum(len(samples) for samples in sets.values()), 0
    vectors: Vectors = {}
    bar = place.progress(0.0, f"What is lost? Scoring {total} samples that come with the project ...")
    for label, samples in sets.items():
        before = finished

        def progress(done: int, before: int = before) -> None:
            bar.progress(min((before + done) / total, 1.0))

        vectors[label] = detector.score_vectors(samples, n=n_max, seed=seed, progress=progress)
        finished += len(samples)
    place.empty()
    while len(store) >= MOST:
        store.pop(next(iter(store)), None)
    store[key] = vectors
    return vectors


def show_lost(lost: Lost, *, training: bool) -> None:
    """A small table, a warning when little is left, and the way out. `training`: whether there is one on this page."""
    st.markdown("### What is lost")
    little = lost.blind or lost.after < lost.before / 2
    if little:
        st.warning(lost.reading(), icon=f":material/{'visibility_off' if lost.blind else 'trending_down'}:")
    else:
        st.markdown(lost.reading())
    if little and training:
        st.button(
            "Train on these files instead", icon=":material/model_training:", key="lost_train",
            on_click=st.session_state.__setitem__, args=(WAY, TRAIN),
        )  # fmt: skip
    rows = [
        f"| {escape(catch.label)} | {catch.before / catch.total:.0%} | {catch.after / catch.total:.0%} | {catch.total} |"
        for catch in lost.catches
    ]
    st.markdown(
        f"| caught at epsilon = {lost.epsilon:g} | parent | yours | samples |\n|---|---|---|---|\n"
        + "\n".join(rows)
    )
    source = (
        ""
        if [catch.label for catch in lost.catches] == [USER_SET]
        else "Samples that come with the project. "
    )
    st.caption(
        f"{source}Recalibrating repairs false alarms, not detection. What belongs in your setting should no longer be caught; "
        "everything else should."
    )
