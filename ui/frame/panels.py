"""Panels: parts of a page that a setting draws again, in place of the whole page."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import ParamSpec

import streamlit as st
from streamlit.errors import StreamlitAPIException

from ui.frame.messages import guard

P = ParamSpec("P")

Live = Mapping[str, Sequence[str]]
"""Name of a setting -> keys of the panels that a change of it reruns, in place of the whole page."""


def page_begins() -> None:
    """Until the page has run to its end, no panel can run alone."""
    st.session_state["page_complete"], st.session_state["unfinished"] = False, ()


def page_complete() -> None:
    """The page has run to its end, so from now on its fragments can run alone."""
    st.session_state["page_complete"] = True


def panel(key: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """A fragment that shows the settings as they are now, and bad input as a sentence."""

    def decorate(draw: Callable[P, None]) -> Callable[P, None]:
        @st.fragment(key=key)
        @wraps(draw)
        def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
            with guard():
                draw(*args, **kwargs)
                unfinished = st.session_state.get("unfinished", ())
                st.session_state["unfinished"] = tuple(name for name in unfinished if name != key)

        return drawn

    return decorate


def rerun_panels(*fragments: str) -> None:
    """For callbacks: rerun these fragments only; the whole page when there are none. A change may interrupt what runs at that moment,
    so what it left unfinished is done as well: a page that has not come to its end runs again as a whole, and so does a fragment.
    """
    if not fragments or not st.session_state.get("page_complete"):
        st.rerun()
    st.session_state["unfinished"] = tuple(
        dict.fromkeys((*fragments, *st.session_state.get("unfinished", ())))
    )
    try:
        st.rerun(st.session_state["unfinished"])
    except StreamlitAPIException:
        st.rerun()  # a fragment is not on the page at the moment
