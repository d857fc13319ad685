"""Evaluate: how well what belongs is told from what does not, for stored test sets or a visitor's own."""

import streamlit as st

from ui.frame.cache import get_configs
from ui.frame.choices import one_of
from ui.frame.links import carry_over, keep
from ui.frame.messages import guard
from ui.frame.settings import sidebar

LIVE = dict.fromkeys(("n", "epsilon", "aggregate"), ("evaluation",))
SOURCES = ("Stored test sets", "My scores", "My files")

with guard():
    settings = sidebar(LIVE)
    carry_over(("ev_source",))
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        st.title("Evaluate", width="content")
        choice = one_of("What to evaluate", SOURCES, "ev_source")
    keep(("ev_source",))
    config = get_configs()[settings.detector]
    from ui.evaluate.own import own_files, own_scores
    from ui.evaluate.panels import evaluation
    from ui.evaluate.source import stored_source

    if choice == "My scores":
        source = own_scores()
    elif choice == "My files":
        source = own_files(config)
    else:
        source = stored_source(config)
    if source is not None:
        evaluation(source)
