"""What is stored with a detector, for the pages that look at it: scores of test sets, or a sentence about what is missing."""

from typing import TYPE_CHECKING

import streamlit as st

from idecode_core.errors import IdecodeError
from idecode_core.folder.settings import FolderSettings
from ui.frame.cache import get_stored
from ui.frame.messages import escape, refused

if TYPE_CHECKING:
    from idecode_core.folder.stored import Stored


def stored_or_said(config: FolderSettings) -> "Stored | None":
    """What is stored with a detector, or None, after a sentence where something is wrong with it."""
    try:
        return get_stored(config)
    except IdecodeError as error:
        refused([str(error)])
        return None


def stored_or_none(config: FolderSettings) -> "Stored | None":
    """The same without a word."""
    try:
        return get_stored(config)
    except IdecodeError:
        return None


def no_scores(config: FolderSettings) -> None:
    st.info(
        f"No test scores are stored with **{escape(config.name)}** yet. With the datasets at hand, "
        f"`python -m idecode_core score-sets {config.folder.name}` makes them once. Until then, choose another detector in "
        "the sidebar, or bring your own scores or files.",
        icon=":material/info:",
    )
