"""What the new calibration costs: the bundled sets that the parent caught, and what is still caught."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.folder.settings import FolderSettings
from ui.frame.cache import get_detector
from ui.frame.settings import Settings

if TYPE_CHECKING:
    from idecode_core.conformal.calibration import Calibration
    from idecode_core.detector import Detector
    from idecode_core.evaluation.recalibrated import Lost


def lost_by(
    config: FolderSettings, detector: "Detector", own: "Calibration", n: int, settings: Settings
) -> "Lost":
    from idecode_core.evaluation.recalibrated import what_is_lost

    vectors = bundled_vectors(
        config.scorer_sha256, config.dataset, settings.seed, detector.calibration.n_max, config
    )
    return what_is_lost(
        detector.calibration, own, vectors, n=n, epsilon=settings.epsilon, aggregate=settings.aggregate
    )


@st.cache_resource(
    show_spinner="Looking at what is lost: scoring samples that come with the project ...", max_entries=24
)
def bundled_vectors(
    scorer_sha256: str, dataset: str, seed: int, n_max: int, _config: FolderSettings
) -> dict[str, NDArray[np.float64]]:
    """Label -> V at n_max of bundled samples; for all visitors, nothing of theirs is in it."""
    from idecode_core.evaluation.recalibrated import bundled_sets

    detector = get_detector(_config)
    sets = bundled_sets(_config.modality, dataset)
    return {label: detector.score_vectors(samples, n=n_max, seed=seed) for label, samples in sets.items()}


def show_lost(lost: "Lost") -> None:
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
