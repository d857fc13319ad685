"""The home page: a live example, three doors, and the folders that cannot be used."""

from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

import streamlit as st

from idecode_core.folder.settings import FILES, FolderSettings, checkpoint_root
from ui.frame.cache import Stamps, get_detector, stamps
from ui.frame.catalogue import link, pages
from ui.frame.links import choose_sample
from ui.frame.look import PRESENT
from ui.frame.messages import escape
from ui.frame.panels import JUDGED, panel
from ui.frame.samples import Sample, modality_of
from ui.frame.settings import current
from ui.learn.class_plan import CLASS, state_of


class Way(NamedTuple):
    """A link to a page in a given state."""

    page: str
    title: str
    icon: str
    state: dict[str, str]
    promise: str


class Door(NamedTuple):
    """One kind of visitor, and the pages that are theirs."""

    title: str
    icon: str
    promise: str
    pages: tuple[str, ...]
    ways: tuple[Way, ...] = ()
    """Other than to a page as it opens; they come first."""


TEACHING = (
    Way("how_it_works", "Plan of the class", "schedule", {CLASS: "open"}, "45 minutes, row by row; a worksheet to print."),
    Way("how_it_works", "Presenter view", "present_to_all", {**state_of(0), PRESENT: "true"}, "For the projector: large type, PageDown goes on."),
)  # fmt: skip
DOORS = (
    Door("I have files", "folder_open", "Are they flagged, and why? Or make a detector of them.", ("inspect", "calibrate", "certify")),
    Door("I compare methods", "monitoring", "How much is caught, what is promised, what fools it?", ("evaluate", "guarantee", "attack_lab")),
    Door("I teach", "school", "A class of 45 minutes, with things to move.", ("how_it_works", "break_it", "many_and_streams"), TEACHING),
)  # fmt: skip
SHOWN = 8  # of each kind: one row


def doors() -> None:
    """What would you like to do? Three answers, side by side; what a page is for is said when one points at it."""
    entries = {page.name: page for page in pages()}
    with st.container(key="doors"):
        columns = st.columns(len(DOORS), gap="medium")
    for column, door in zip(columns, DOORS, strict=True):
        with column:
            st.markdown(f"## :material/{door.icon}: {door.title}\n:small[{door.promise}]")
            with st.container(horizontal=True, gap=None):
                for way in door.ways:
                    link(way.page, way.title, way.icon, way.state, way.promise)
                for page in (entries[name] for name in door.pages if name in entries):
                    link(page.name, page.title, page.icon, help=page.promise)


def show_broken() -> None:
    """One line for each folder that should hold a detector and does not."""
    root = checkpoint_root()
    for line in _broken(str(root), stamps(root, *(f"*/{name}" for name in FILES))):
        st.caption(f":orange[:material/warning:] {escape(line)}")


@st.cache_data(show_spinner=False, max_entries=4)
def _broken(root: str, stamps: Stamps) -> list[str]:
    from idecode_core.folder.listing import list_folders

    return [f"{broken.folder.name} cannot be used: {broken.sentence}" for broken in list_folders(root).broken]


@panel("example", on=JUDGED)
def live_example(config: FolderSettings) -> None:
    """Something that belongs beside something else: each to choose, with its verdict among the calibration scores."""
    modality = modality_of(config)
    gallery = modality.gallery(config)
    groups = {
        "belonging": (escape(config.summary), dict(islice(gallery.belonging.items(), SHOWN))),
        "foreign": (gallery.foreign_title, spread(gallery.foreign)),
    }
    shown = {key: group for key, group in groups.items() if group[1]}
    if not shown:
        st.info("Open Inspect to try this detector.", icon=":material/search:")
        return
    st.markdown("**Click a picture: it is judged now.**")
    choices, judgements, figures = (st.columns(2, gap="large") for _ in range(3))
    chosen_samples: dict[str, Sample] = {}
    for column, (key, (title, labels)) in zip(choices, shown.items(), strict=False):
        chosen = f"example_{key}"
        if st.session_state.get(chosen) not in labels:
            st.session_state[chosen] = gallery.first if gallery.first in labels else next(iter(labels))
        if (sample := modality.find(config, st.session_state[chosen])) is not None:
            chosen_samples[key] = sample
        with column:
            choose_sample(
                f"{modality.prefix}{key}", title, labels, st.session_state[chosen], chosen, reset="draw"
            )
    from ui.frame.scores import score_vectors, verdicts
    from ui.inspect.verdict import show_aggregate, show_power, show_words

    detector, settings = get_detector(config), current()
    samples = list(chosen_samples.values())
    vectors = score_vectors(detector, samples, settings.seed)
    judged = verdicts(detector, [sample.content_hash for sample in samples], vectors, settings)
    for words, figure, key, verdict in zip(judgements, figures, chosen_samples, judged, strict=False):
        sample = chosen_samples[key]
        with words, st.container(horizontal=True, vertical_alignment="center", key=f"picture_{key}"):
            with st.container(width=modality.width):
                modality.show(sample)
            with st.container(width="stretch", gap="xsmall"):
                show_words(sample, verdict, brief=True)
        with figure:
            show_aggregate(detector, verdict, settings, height=190, key=f"aggregate_{key}")
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button(
            f"Inspect a {modality.thing} of your own", type="primary", icon=":material/upload_file:"
        ):
            st.switch_page("pages/inspect.py", query_params={f"{modality.prefix}source": "Files"})
        with st.container(width="stretch"):
            show_power(config, settings)


def spread(labels: Mapping[str, str]) -> dict[str, str]:
    """At most SHOWN of a gallery, from all over it, the first one among them."""
    return dict(islice(labels.items(), 0, None, max(-(-len(labels) // SHOWN), 1)))
