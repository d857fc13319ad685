"""One of a few, side by side: words, of which one is always chosen, or bundled samples."""

from collections.abc import Iterable, Mapping
from typing import Any

import streamlit as st


def one_of(label: str, options: Iterable[Any], key: str, **more: Any) -> Any:
    """At first the first, and it is in the link. The label is for screen readers; `more` are settings of `st.segmented_control`, also in place of these."""
    options = list(options)
    settings = {"default": options[0], "bind": "query-params", "label_visibility": "collapsed", **more}
    return st.segmented_control(label, options, required=True, key=key, **settings)


def choose_sample(
    key: str, title: str, labels: Mapping[str, str], address: str, chosen: str, *, reset: str = ""
) -> None:
    """Bundled samples to click on, if there are any; st.session_state[chosen] then holds the address, and `reset` None."""
    if not labels:
        return

    def take() -> None:
        # A click on the chosen one would unselect it; the page keeps it.
        if clicked := st.session_state[key]:
            st.session_state[chosen] = clicked
            if reset:
                st.session_state[reset] = None

    st.session_state[key] = address if address in labels else None
    st.pills(title, list(labels), format_func=labels.__getitem__, key=key, on_change=take, wrap=True)
