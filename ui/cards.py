"""Cards of the home page: the detectors, and the ways in."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from idecode_core.errors import IdecodeError
from ui.catalogue import PageEntry

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


def detector_card(config: dict[str, Any]) -> "DeltaGenerator":
    """What a detector knows; returns the place of its facts, for `show_facts` once its headline is known."""
    with st.container(border=True, height="stretch"):
        icon = "graphic_eq" if config.get("modality") == "audio" else "image"
        st.markdown(f"**:material/{icon}: {config['name']}**")
        st.markdown(f"In-distribution: **{config.get('summary') or 'see its card'}**")
        place = st.empty()
        show_facts(place, config, None)
        link("inspect", "Use it", ":material/arrow_forward:", {"detector": Path(config["folder"]).name})
    return place


def show_facts(place: "DeltaGenerator", config: dict[str, Any], headline: str | None) -> None:
    """The size of a detector, and how well it does."""
    facts = f"k = {config.get('k', 0):,} · up to {config.get('n_max', 0)} transforms"
    place.caption(f"{facts}  \n{headline}" if headline else facts)


def headline(config: dict[str, Any]) -> str | None:
    """Mean AUROC over the stored OOD sets; None when no scores are stored."""
    folder = Path(config["folder"])
    stamps = tuple((path.name, path.stat().st_mtime_ns) for path in sorted((folder / "scores").glob("*.npz")))
    return _headline(str(folder), str(config.get("scorer_sha256")), stamps) if stamps else None


@st.cache_data(show_spinner=False)
def _headline(folder: str, scorer: str, stamps: tuple[tuple[str, int], ...]) -> str | None:
    from idecode_core.evaluation import evaluate, id_and_ood, read_scores
    from ui.cache import get_detector

    try:
        id_set, ood_sets = id_and_ood(read_scores(folder, scorer), folder)
        calibration = get_detector(folder).calibration
        aurocs = [evaluate(calibration, id_set, ood_set, HEADLINE_N).auroc.mean for ood_set in ood_sets]
    except IdecodeError:
        return None
    if not aurocs:
        return None
    against = ood_sets[0].label if len(ood_sets) == 1 else f"the mean over {len(ood_sets)} OOD sets"
    return f"AUROC {sum(aurocs) / len(aurocs):.1%} with n = {HEADLINE_N}, {against}"
