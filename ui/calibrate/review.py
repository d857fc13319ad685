"""Dirty calibration: the strangest of a visitor's files to look through; what does not belong leaves, and the bound stays."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.dirty import contamination, label_trim, strangest, what_it_promises
from ui.frame.messages import escape
from ui.frame.samples import Sample, data_uri
from ui.frame.settings import Chosen

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
