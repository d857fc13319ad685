"""Certify: scores of normal points, from any detector, become a threshold that means something."""

import streamlit as st

from ui.certify.threshold import bring, controls, example, result
from ui.frame.links import one_of
from ui.frame.messages import guard
from ui.frame.settings import enter_by_app

OWN, EXAMPLE = "Your scores", "An example"

with guard():
    enter_by_app()
    with st.container(key="page_head", gap=None):
        st.title("Certify")
    st.markdown(
        "Scores of **normal** points from any detector, PyOD, pytorch-ood or your own, are all that is needed: the threshold keeps "
        "false alarms below the rate that you choose. New scores get p-values."
    )
    with st.container(key="verdict_first"):
        left, right = st.columns([1, 2.2], gap="large")
    with left:
        is_example = one_of("Scores", (OWN, EXAMPLE), "c_source", default=EXAMPLE, width="stretch") == EXAMPLE
        scores = example() if is_example else bring()
        if is_example:
            st.caption(
                "Scores that a detector of clothing gave to clothing it had not seen. The new ones are clothing and "
                "pictures of something else, half each."
            )
        settings = controls()
    with right:
        if scores is None:
            st.info(
                "Bring a file with the scores of normal points, one row per point, or look at the example.",
                icon=":material/upload_file:",
            )
        else:
            result(scores, settings)
