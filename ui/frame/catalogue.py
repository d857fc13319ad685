"""The pages of the app: one list for the navigation and for the ways in on the home page."""

from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.errors import StreamlitAPIException

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class PageEntry:
    """One file of pages/."""

    name: str
    title: str
    icon: str
    section: str
    promise: str
    """What a visitor gets there, in one line."""

    @property
    def path(self) -> Path:
        return ROOT / "pages" / f"{self.name}.py"


PAGES = (
    PageEntry("home", "Home", "home", "", ""),
    PageEntry("inspect", "Inspect", "search", "Use", "Drop in a picture or a sound: is it flagged, and why?"),
    PageEntry("calibrate", "Your data", "tune", "Use", "Bring your own files; train a detector of them, or calibrate one on them."),
    PageEntry("certify", "Certify", "fact_check", "Use", "Bring scores of any detector; get a threshold that means something."),
    PageEntry("evaluate", "Evaluate", "monitoring", "Trust", "How well the detectors tell OOD sets apart, beside the paper's numbers."),
    PageEntry("guarantee", "Guarantee", "verified", "Trust", "What exactly is promised, and whether the promise is kept."),
    PageEntry("attack_lab", "Attack lab", "target", "Trust", "Make a classifier take a picture for something else; does the detector see it?"),
    PageEntry("how_it_works", "How it works", "school", "Learn", "The method in five minutes, with things to move."),
    PageEntry("break_it", "Break it", "healing", "Learn", "Violate an assumption and watch the guarantee go."),
    PageEntry("many_and_streams", "Many and streams", "stacks", "Learn", "Two more promises, simulated: for a batch of many inputs and for a stream that changes."),
)  # fmt: skip


def pages() -> list[PageEntry]:
    """Those that are there."""
    return [page for page in PAGES if page.path.exists()]


def link(
    name: str, label: str, icon: str, query_params: dict[str, str] | None = None, help: str | None = None
) -> None:
    """A link to a page, in a given state; plain words when the page stands alone, as in a test."""
    try:
        st.page_link(
            f"pages/{name}.py", label=label, icon=f":material/{icon}:", query_params=query_params, help=help
        )
    except StreamlitAPIException:
        st.markdown(f":material/{icon}: {label}")
