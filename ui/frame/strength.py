"""How good each detector is, from its stored scores: computed once for all visitors, and not before a page has painted."""

from typing import TYPE_CHECKING

import streamlit as st

from idecode_core.errors import IdecodeError
from idecode_core.folder.settings import FolderSettings
from ui.frame.cache import Stamps, get_stored, stored_stamps

KNOWN = "known_strengths"

if TYPE_CHECKING:
    from idecode_core.quality.strength import Strength


def strength_of(config: FolderSettings) -> "Strength | None":
    """Mean AUROC over the stored OOD sets; None when no scores are stored."""
    stamps = stored_stamps(config)
    found = _strength(config, str(config.folder), stamps)
    st.session_state.setdefault(KNOWN, {})[str(config.folder), stamps] = found
    return found


def known_strength(config: FolderSettings) -> "Strength | None":
    """The same where it costs nothing: this session has asked before."""
    known: dict[object, Strength | None] = st.session_state.get(KNOWN, {})
    return known.get((str(config.folder), stored_stamps(config)))


@st.cache_data(show_spinner=False)
def _strength(_config: FolderSettings, folder: str, stamps: Stamps) -> "Strength | None":
    from idecode_core.quality.strength import strength

    try:
        stored = get_stored(_config)
        return strength(stored) if stored is not None and stored.ood_sets else None
    except IdecodeError:
        return None
