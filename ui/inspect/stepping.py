"""Two buttons and two keys: to the neighbour before and after what is shown."""

from collections.abc import Callable
from typing import Any

import streamlit as st


def step_buttons(
    key: str,
    before: tuple[str, str, str],
    after: tuple[str, str, str],
    at: int,
    count: int,
    go: Callable[..., None],
    *arguments: Any,
) -> None:
    """`before` and `after` are a button's words, shortcut and icon; `go` is called with the arguments and the new place."""
    for (label, shortcut, icon), step in ((before, -1), (after, 1)):
        st.button(
            label,
            key=f"{key}_{step}",
            icon=f":material/{icon}:",
            shortcut=shortcut,
            disabled=not 0 <= at + step < count,
            on_click=go,
            args=(*arguments, at + step),
        )
