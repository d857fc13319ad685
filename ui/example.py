"""The live example of the home page: a handful of bundled pictures, one detector, a verdict."""

from typing import Any

import streamlit as st

from ui.cache import get_detector
from ui.gallery import gallery, thumbnails
from ui.messages import guard
from ui.settings import current

PICTURES = 4  # of each kind


@st.fragment(key="example")
def live_example(config: dict[str, Any]) -> None:
    """Choose a picture, see the verdict and where it lies among the calibration scores."""
    with guard():
        pictures = gallery(config)
        belonging, foreign = (
            pictures.belonging[:PICTURES],
            pictures.foreign[:: max(len(pictures.foreign) // PICTURES, 1)],
        )
        offered = {sample.address: sample for sample in (*foreign[:PICTURES], *belonging)}
        if config.get("modality") == "audio" or not offered:
            st.info("Open Inspect to try this detector.", icon=":material/search:")
            return
        st.session_state.setdefault("example_sample", next(iter(offered)))
        sample = offered.get(st.session_state["example_sample"]) or next(iter(offered.values()))
        left, right = st.columns([1, 2.4], gap="large")
        with left:
            st.caption("Click a picture: the detector judges it now.")
            for key, label, group in (
                ("foreign", "Something else", foreign[:PICTURES]),
                ("belonging", config["summary"], belonging),
            ):
                st.session_state[key] = sample.address if sample in group else None
                thumbnails(label, tuple(group), key, lambda key=key: _take(key))
            if st.button("Inspect a picture of your own", type="primary", icon=":material/upload_file:"):
                st.switch_page("pages/inspect.py", query_params={"source": "Files"})
        with right:
            from ui.inspect_view import show_aggregate, show_verdict, verdicts
            from ui.scores import score_vectors

            detector, settings = get_detector(config["folder"]), current()
            [verdict] = verdicts(
                detector, [sample], score_vectors(detector, [sample], settings.seed), settings
            )
            show_verdict(detector, sample, verdict)
            show_aggregate(detector, verdict, settings, height=230)


def _take(key: str) -> None:
    if address := st.session_state[key]:
        st.session_state["example_sample"] = address
