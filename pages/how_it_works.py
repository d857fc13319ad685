"""How it works: the idea in six steps on one small dataset, then a playground."""

from typing import Any

import streamlit as st

from ui.frame.choices import one_of
from ui.frame.export import export_row
from ui.frame.messages import guard
from ui.learn.arrow_lesson import Lesson, export_of
from ui.learn.arrow_model import step_4_model, step_5_draws, step_6_algorithm
from ui.learn.arrow_ranks import step_1_rank, step_2_p_value, step_3_threshold
from ui.learn.playground import playground
from ui.learn.teaching import LINKED, class_plan, lesson, seed_control

STEPS = {
    "1 Rank": step_1_rank,
    "2 p-value": step_2_p_value,
    "3 Threshold": step_3_threshold,
    "4 Model": step_4_model,
    "5 Draws": step_5_draws,
    "6 Algorithm": step_6_algorithm,
}
PLAYGROUND = "Playground"
NAMES = (*STEPS, PLAYGROUND)

SLIDERS: dict[str, dict[str, Any]] = {
    "lean": {"label": "The newcomer's lean", "min_value": -60.0, "max_value": 60.0, "value": 14.0, "step": 0.5, "format": "%.1f°"},
    "epsilon": {"label": "False alarms allowed, ε", "min_value": 0.01, "max_value": 0.5, "value": 0.1, "step": 0.01},
    "n": {"label": "Turns for each arrow, n", "min_value": 1, "max_value": 20, "value": 5},
    "turn": {"label": "The turn g", "min_value": 0.0, "max_value": 359.5, "value": 47.0, "step": 0.5, "format": "%.1f°"},
}  # fmt: skip
# The sliders that each step shows.
NEEDED = (
    ("lean",),
    ("lean",),
    ("lean", "epsilon"),
    ("lean", "turn"),
    ("lean", "epsilon", "n"),
    ("lean", "epsilon", "n"),
)


def choose_lesson(step: str) -> Lesson:
    """The controls of the six steps; each step shows only those it needs, the others keep their value."""
    needed = NEEDED[NAMES.index(step)]
    columns = st.columns([*(2 if len(needed) < 3 else 1.3 for _ in needed), 2], vertical_alignment="bottom")
    values = {name: st.session_state.get(f"how_{name}", slider["value"]) for name, slider in SLIDERS.items()}
    for column, name in zip(columns, needed, strict=False):
        with column:
            values[name] = st.slider(**SLIDERS[name], key=f"how_{name}", **LINKED)
    with columns[-1]:
        seed = seed_control("how_seed", default=9, what="New friends")
    return Lesson(seed=seed, **values)


def next_step() -> None:
    """Move on to the following step."""
    st.session_state["step"] = NAMES[(NAMES.index(st.session_state["step"]) + 1) % len(NAMES)]


with guard(), lesson("How it works"):
    with st.container(horizontal=True, vertical_alignment="center"):
        step = one_of("Step", NAMES, "step", **LINKED, wrap=True)
        if step != PLAYGROUND:
            st.button("Next", icon=":material/arrow_forward:", type="primary", on_click=next_step, key="next")
    if step == PLAYGROUND:
        playground()
    else:
        chosen = choose_lesson(step)
        STEPS[step](chosen)
        class_plan()
        export_row("arrows", lambda: export_of(chosen))
