"""Cards of the home page: the detectors, and the ways in."""

from typing import TYPE_CHECKING

import streamlit as st
from streamlit.errors import StreamlitAPIException

from idecode_core.errors import IdecodeError
from idecode_core.folder.settings import FolderSettings
from ui.frame.cache import Stamps, get_stored, stored_stamps
from ui.frame.catalogue import PageEntry
from ui.frame.modality import modality_of

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

HEADLINE_N = 5


def way_in(page: PageEntry) -> None:
    """A page's link and promise."""
    with st.container(border=True, height="stretch"):
        link(page.name, page.title, f":material/{page.icon}:")
        st.caption(page.promise)


def link(name: str, label: str, icon: str, query_params: dict[str, str] | None = None) -> None:
    """A link to a page; plain words when the page stands alone, as in a test."""
    try:
        st.page_link(f"pages/{name}.py", label=label, icon=icon, query_params=query_params)
    except StreamlitAPIException:
        st.markdown(f"{icon} {label}")


def detector_card(config: FolderSettings) -> "DeltaGenerator":
    """What a detector knows; returns the place of its facts, for `show_facts` once its headline is known."""
    with st.container(border=True, height="stretch"):
        st.markdown(f"**:material/{modality_of(config).icon}: {config.name}**")
        st.markdown(f"In-distribution: **{config.summary or 'see its card'}**")
        place = st.empty()
        show_facts(place, config, None)
        link("inspect", "Use it", ":material/arrow_forward:", {"detector": config.folder.name})
    return place


def show_facts(place: "DeltaGenerator", config: FolderSettings, headline: str | None) -> None:
    """The size of a detector, and how well it does."""
    facts = f"k = {config.k:,} · up to {config.n_max} transforms"
    place.caption(f"{facts}  \n{headline}" if headline else facts)


def headline(config: FolderSettings) -> str | None:
    """Mean AUROC over the stored OOD sets; None when no scores are stored."""
    return _headline(config, str(config.folder), stored_stamps(config))


@st.cache_data(show_spinner=False)
def _headline(_config: FolderSettings, folder: str, stamps: Stamps) -> str | None:
    from idecode_core.evaluation.methods import evaluate_sets

    try:
        stored = get_stored(_config)
    except IdecodeError:
        return None
    if stored is None or not stored.ood_sets:
        return None
    found = evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, HEADLINE_N)
    mean = sum(evaluation.auroc.mean for evaluation in found) / len(found)
    against = stored.ood_sets[0].label if len(found) == 1 else f"the mean over {len(found)} OOD sets"
    return f"AUROC {mean:.1%} with n = {HEADLINE_N}, {against}"
