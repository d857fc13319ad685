"""Where the inputs of the Inspect page come from: the gallery, the visitor's files, camera or microphone."""

from collections.abc import Mapping

import streamlit as st

from idecode_core.files.archives import File
from idecode_core.folder.settings import FolderSettings
from ui.frame import links
from ui.frame.choices import choose_sample, one_of
from ui.frame.links import carry_over, keep, link_value
from ui.frame.messages import escape, refused
from ui.frame.modality import Modality, modality_of
from ui.frame.samples import Sample
from ui.frame.uploads import check_files
from ui.inspect.bring import bring_files, nothing_readable

LONGEST = 80  # characters of an address in a link
NAMES = {"sample": "the sample", "versus": "a second opinion by", "draw": "draw"}
"""What a link carries besides the settings, and what a notice calls it."""


def choose_samples(config: FolderSettings) -> list[Sample]:
    """What the visitor wants to look at. Empty only when there is nothing yet; what was shown last stays otherwise."""
    modality = modality_of(config)
    st.session_state.setdefault("sample", linked_address())
    key = f"{modality.prefix}source"
    carry_over([key])
    sources = {"Gallery": from_gallery, "Files": from_files, modality.capture.source: captured}
    source = one_of(f"{modality.thing.capitalize()} from", sources, key, width="stretch")
    keep([key])
    chosen = sources[source](config, modality)
    held = [sample for sample in st.session_state.get("shown", []) if sample.modality is modality]
    if not chosen and not held and (linked := modality.find(config, st.session_state["sample"] or "")):
        held = [linked]
    if not chosen and held:
        st.caption(f"Still showing: {escape(', '.join(sample.name for sample in held[:3]))}")
    samples = chosen or held
    st.session_state["shown"] = samples
    return samples


def linked_address() -> str | None:
    """The address in the link, if it can be one: a number in another script is none."""
    address = link_value("sample") or ""
    return address if address.isascii() and 0 < len(address) <= LONGEST else None


def say_unmet(wanted: Mapping[str, str], sample: Sample) -> None:
    """A sentence for each thing that the link asks for and that is not what is shown."""
    shown = {"sample": sample.address, "versus": st.session_state.get("versus"), "draw": link_value("draw")}
    why = {
        "sample": "which is not among those that come with the project, or not for this detector",
        "versus": "which is not here, or takes other files than this detector",
        "draw": "which is none of the draws of this view",
    }
    links.say_unmet("inspect", wanted, {key: value or "none" for key, value in shown.items()}, why, NAMES)


def from_gallery(config: FolderSettings, modality: Modality) -> list[Sample]:
    gallery = modality.gallery(config)
    sample = modality.find(config, st.session_state["sample"] or "") or modality.find(config, gallery.first)
    if sample is None:
        st.info(
            f"No bundled {modality.plural} were found. Drop in a file of your own, or {modality.capture.words}."
        )
        return []
    st.session_state["sample"] = sample.address
    if gallery.note:
        st.caption(gallery.note)
    summary = escape(config.summary or "what the detector knows")
    for key, title, group in (
        ("belonging", f"In-distribution: {summary}", gallery.belonging),
        ("foreign", gallery.foreign_title, gallery.foreign),
    ):
        choose_sample(f"{modality.prefix}{key}", title, group, sample.address, "sample", reset="draw")
    return [sample]


def from_files(config: FolderSettings, modality: Modality) -> list[Sample]:
    samples = bring_files(modality)
    wanted = st.session_state["sample"] or ""
    if wanted.startswith("file-") and not samples:
        links.say_not_carried(wanted)
    elif nothing_readable():
        st.info(
            "None of the files could be read, so there is nothing to judge; what was here before is gone."
        )
    elif not samples:
        st.caption(
            f"Drop in one {modality.thing}, many, a zip or a folder. They are kept for your session only."
        )
    return samples


def captured(config: FolderSettings, modality: Modality) -> list[Sample]:
    """What the camera or the microphone took; decoded once."""
    taken = modality.capture.take()
    if taken is None:
        st.caption(modality.capture.hint)
        return []
    if st.session_state.get("captured_id") != taken.file_id:
        file = File(modality.capture.name, taken.getvalue())
        st.session_state["captured"] = check_files([file], modality)
        st.session_state["captured_id"] = taken.file_id
    samples, sentences = st.session_state["captured"]
    refused(sentences)
    return list(samples)
