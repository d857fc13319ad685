"""Cards of the home page: the detectors, and the ways in."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idecode_core.folder.settings import FILES, FolderSettings, checkpoint_root
from ui.frame.cache import Stamps, stamps
from ui.frame.catalogue import PageEntry, link
from ui.frame.messages import escape
from ui.frame.modality import modality_of
from ui.frame.strength import strength_of

T = TypeVar("T")
R = TypeVar("R")

CARDS_PER_ROW = 4


def in_rows(items: Sequence[T], card: Callable[[T], R]) -> list[R]:
    """A card for each item, some beside each other; returns what the cards return."""
    made = []
    for first in range(0, len(items), CARDS_PER_ROW):
        row = items[first : first + CARDS_PER_ROW]
        for column, item in zip(st.columns(CARDS_PER_ROW), row, strict=False):
            with column:
                made.append(card(item))
    return made


def way_in(page: PageEntry) -> None:
    """A page's link and promise."""
    with st.container(border=True, height="stretch"):
        link(page.name, page.title, page.icon)
        st.caption(page.promise)


def detector_card(config: FolderSettings) -> DeltaGenerator:
    """What a detector knows; returns the place of its facts, for `show_facts` once its headline is known."""
    with st.container(border=True, height="stretch"):
        st.markdown(f"**:material/{modality_of(config).icon}: {escape(config.name)}**")
        st.markdown(f"In-distribution: **{escape(config.summary or 'see its card')}**")
        place = st.empty()
        show_facts(place, config, None)
        link("inspect", "Use it", "arrow_forward", {"detector": config.folder.name})
    return place


def show_facts(place: DeltaGenerator, config: FolderSettings, headline: str | None) -> None:
    """The size of a detector, and how well it does."""
    facts = f"k = {config.k:,} · up to {config.n_max} transforms"
    place.caption(f"{facts}  \n{escape(headline)}" if headline else facts)


def headline(config: FolderSettings) -> str | None:
    """Mean AUROC over the stored OOD sets, and whether that is weak; None when no scores are stored."""
    strength = strength_of(config)
    if strength is None:
        return None
    against = "one OOD set" if strength.sets == 1 else f"the mean over {strength.sets} OOD sets"
    return f"{strength}, with n = {strength.n}, {against}"


def show_broken() -> None:
    """One line for each folder that should hold a detector and does not."""
    root = checkpoint_root()
    for line in _broken(str(root), stamps(root, *(f"*/{name}" for name in FILES))):
        st.caption(f":orange[:material/warning:] {escape(line)}")


@st.cache_data(show_spinner=False, max_entries=4)
def _broken(root: str, stamps: Stamps) -> list[str]:
    from idecode_core.folder.listing import list_folders

    return [f"{one.folder.name} cannot be used: {one.sentence}" for one in list_folders(root).broken]
