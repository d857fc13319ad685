"""Panels: parts of a page that a setting draws again, in place of the whole page."""

from collections.abc import Callable, Collection
from functools import wraps
from typing import ParamSpec

import streamlit as st
from streamlit.errors import StreamlitAPIException

from ui.frame.messages import guard

P = ParamSpec("P")
JUDGED = ("epsilon", "n", "aggregate", "p")
"""The settings that a verdict depends on."""


def page_begins() -> None:
    """Until the page has run to its end, no panel can run alone."""
    st.session_state["page_complete"], st.session_state["unfinished"] = False, ()
    st.session_state["panels"] = {}


def page_complete() -> None:
    """The page has run to its end, so from now on its fragments can run alone."""
    st.session_state["page_complete"] = True


def panel(key: str, on: Collection[str] = ()) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """A fragment that shows the settings as they are now, and bad input as a sentence.

    `on` are the settings and choices that draw it again, in place of the whole page: see `rerun_on`.
    """

    def decorate(draw: Callable[P, None]) -> Callable[P, None]:
        @st.fragment(key=key)
        @wraps(draw)
        def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
            st.session_state.setdefault("panels", {})[key] = on
            with guard():
                draw(*args, **kwargs)
                unfinished = st.session_state.get("unfinished", ())
                st.session_state["unfinished"] = tuple(name for name in unfinished if name != key)

        return drawn

    return decorate


def rerun_on(name: str, first: tuple[str, ...] = ()) -> None:
    """For callbacks: this setting or choice has changed, so draw again the panels of the page that depend on it, in their order
    on the page and after the fragments that go `first`; the whole page when none does."""
    on_it = tuple(key for key, on in st.session_state.get("panels", {}).items() if name in on)
    rerun_panels(*first, *on_it) if on_it else rerun_panels()


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
