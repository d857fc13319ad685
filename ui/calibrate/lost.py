"""What a new calibration costs: of what does not belong, how much the parent caught, and what is still caught."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal.judge import judge
from idecode_core.conformal.observed import ObservedRate, counted_rate
from idecode_core.detector import Detector
from idecode_core.folder.settings import FolderSettings
from idecode_core.modality import modality_named
from idecode_core.quality.user_data import EPSILON, Lost, N
from ui.frame.messages import escape
from ui.frame.samples import Sample
from ui.frame.scores import score_vectors

Vectors = dict[str, NDArray[np.float64]]
Key = tuple[str, str, int, int]
MOST = 24  # detectors and seeds
TRIED = 20  # files that say which way fits
TRAIN, CALIBRATE = "Train", "Calibrate"
WAY = "way"
OWN_SET = "what you brought"


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
        "" if [catch.label for catch in lost.catches] == [OWN_SET] else "Samples that come with the project. "
    )
    st.caption(
        f"{source}Recalibrating repairs false alarms, not detection. What belongs in your setting should no longer be caught; "
        "everything else should."
    )
