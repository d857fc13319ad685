"""How it works: the idea in six steps on arrows, a seventh on a picture, then a playground."""

import streamlit as st

from ui.frame.links import one_of
from ui.frame.messages import guard
from ui.learn.class_plan import class_plan, lesson
from ui.learn.moving_lesson import newcomer, show_step

STEPS = ("1 Rank", "2 p-value", "3 Threshold", "4 Model", "5 Draws", "6 Algorithm")
PICTURE = "7 Picture"
PLAYGROUND = "Playground"
NAMES = (*STEPS, PICTURE, PLAYGROUND)


def next_step() -> None:
    """Move on to the following step."""
    st.session_state["step"] = NAMES[(NAMES.index(st.session_state["step"]) + 1) % len(NAMES)]


with guard(), lesson("How it works"):
    with st.container(key="lesson_steps", horizontal=True, vertical_alignment="center"):
        step = one_of("Step", NAMES, "step", wrap=True)
        if step != PLAYGROUND:
            st.button("Next", icon=":material/arrow_forward:", type="primary", on_click=next_step, key="next")
    if step == PLAYGROUND:
        show_step(11, "play")
    elif step == PICTURE:
        if picture := newcomer():
            show_step(NAMES.index(PICTURE) + 1, world=picture)
    else:
        show_step(NAMES.index(step) + 1)
    class_plan()
