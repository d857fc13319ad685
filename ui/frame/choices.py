"""One of a few, side by side: always one of them, at first the first, and it is in the link."""

from collections.abc import Iterable
from typing import Any

import streamlit as st


def one_of(label: str, options: Iterable[Any], key: str, **more: Any) -> Any:
    """The label is for screen readers; `more` are settings of `st.segmented_control`, also in place of these."""
    options = list(options)
    settings = {"default": options[0], "bind": "query-params", "label_visibility": "collapsed", **more}
    return st.segmented_control(label, options, required=True, key=key, **settings)
