"""Evaluate: how well what belongs is told from what does not, for stored test sets or a visitor's own."""

import streamlit as st

from ui.frame.cache import get_configs
from ui.frame.links import link_value, one_of
from ui.frame.messages import guard
from ui.frame.settings import settings_bar

SOURCES = ("Stored test sets", "My scores", "My files")

with guard():
    from ui.evaluate.source import user_draws

    is_own = st.session_state.get("ev_source", link_value("ev_source")) == "My scores"
    draws = user_draws() if is_own else None
    settings = settings_bar("Evaluate", draws=draws)
    choice = one_of("What to evaluate", SOURCES, "ev_source")
    config = get_configs()[settings.detector]
    from ui.evaluate.evaluation import evaluation
    from ui.evaluate.source import stored_source, user_files, user_scores

    if choice == "My scores":
        source = user_scores()
        if draws != user_draws():  # files that have just come; the bar above was drawn for those before
            st.rerun()
    elif choice == "My files":
        source = user_files(config)
    else:
        source = stored_source(config)
    if source is not None:
        evaluation(source)
