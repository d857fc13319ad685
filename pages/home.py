"""Home: what this is, three doors, and a live example."""

import streamlit as st

from ui.frame import look
from ui.frame.cache import get_configs
from ui.frame.messages import guard
from ui.frame.session import recent_sessions
from ui.frame.settings import settings_bar
from ui.home import doors, show_broken

with guard():
    st.html(look.STYLE)
    settings = settings_bar()
    with st.container(key="bar_below", gap=None):
        st.title("iDECODe Studio")
        st.markdown(
            "Is this input like what the model was trained on? An answer with a p-value; of inputs that do belong, at most the share "
            "that you allow is flagged."
        )
    doors()
    example = st.container(key="judged_now", gap="small")
    recent_sessions()
    show_broken()
    # Everything above paints at once; what follows needs the model.
    with example:
        from ui.home import live_example

        live_example(get_configs()[settings.detector])
