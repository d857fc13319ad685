"""What the new calibration costs: the bundled sets that the parent caught, and what is still caught."""

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.evaluation.recalibrated import Lost, what_is_lost
from idecode_core.folder.settings import FolderSettings
from idecode_core.modality import modality_named
from ui.frame.settings import Settings

Vectors = dict[str, NDArray[np.float64]]
Key = tuple[str, str, int, int]
MOST = 24  # detectors and seeds


def lost_by(config: FolderSettings, detector: Detector, own: Calibration, n: int, settings: Settings) -> Lost:
    vectors = bundled_vectors(config, detector, settings.seed)
    return what_is_lost(
        detector.calibration, own, vectors, n=n, epsilon=settings.epsilon, aggregate=settings.aggregate
    )


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
    found: Vectors = {}
    bar = place.progress(0.0, f"What is lost? Scoring {total} samples that come with the project ...")
    for label, samples in sets.items():
        before = finished

        def progress(done: int, before: int = before) -> None:
            bar.progress(min((before + done) / total, 1.0))

        found[label] = detector.score_vectors(samples, n=n_max, seed=seed, progress=progress)
        finished += len(samples)
    place.empty()
    while len(store) >= MOST:
        store.pop(next(iter(store)), None)
    store[key] = found
    return found


def show_lost(lost: Lost) -> None:
    """A small table, and a warning when little is left."""
    st.markdown("#### What is lost")
    if lost.blind:
        st.warning(lost.reading(), icon=":material/visibility_off:")
    elif lost.after < lost.before / 2:
        st.warning(lost.reading(), icon=":material/trending_down:")
    else:
        st.markdown(lost.reading())
    rows = [
        f"| {catch.label} | {catch.before / catch.total:.0%} | {catch.after / catch.total:.0%} | {catch.total} |"
        for catch in lost.catches
    ]
    st.markdown(
        f"| caught at epsilon = {lost.epsilon:g} | parent | yours | samples |\n|---|---|---|---|\n"
        + "\n".join(rows)
    )
    st.caption(
        "Samples that come with the project. Recalibrating repairs false alarms, not detection. What belongs in your setting "
        "should no longer be caught; everything else should."
    )
