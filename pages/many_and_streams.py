"""Many and streams: a batch of many points, and a stream that changes."""

import streamlit as st

from ui.frame.messages import guard
from ui.learn.batch_lesson import batch_lesson
from ui.learn.stream_lesson import stream_lesson
from ui.learn.teaching import LINKED, class_plan, lesson

VIEWS = {"A batch of many": batch_lesson, "A stream that changes": stream_lesson}

with guard(), lesson("Many and streams"):
    view = st.segmented_control(
        "View",
        list(VIEWS),
        default=next(iter(VIEWS)),
        required=True,
        key="view",
        **LINKED,
        label_visibility="collapsed",
    )
    VIEWS[view]()
    class_plan()
