"""What a link carries besides the settings: which sample, which draw."""

import streamlit as st


def link_value(name: str) -> str | None:
    """What the URL says, or None."""
    value = st.query_params.get(name)
    return str(value) if value else None


def put_in_link(name: str, value: str | None) -> None:
    """Keep the URL in step; writes only what changed, because each write is a message to the browser."""
    if value is None:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != value:
        st.query_params[name] = value
