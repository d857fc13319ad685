"""Where pictures come from: the gallery, the visitor's files, the camera."""

from typing import Any

import streamlit as st

from idecode_core.errors import InputError
from ui.gallery import find, gallery, thumbnails
from ui.links import carry_over, keep, link_value, put_in_link
from ui.messages import escape, refused
from ui.samples import Sample, image_sample, uploads

SOURCES = {
    "Gallery": ":material/grid_view:",
    "Files": ":material/upload_file:",
    "Camera": ":material/photo_camera:",
}


def choose_images(config: dict[str, Any]) -> list[Sample]:
    """What the visitor wants to look at. Empty only when there is nothing yet; what was shown last stays otherwise."""
    st.session_state.setdefault("sample", link_value("sample"))
    carry_over(["source"])
    source = st.segmented_control(
        "Picture from",
        list(SOURCES),
        default="Gallery",
        required=True,
        key="source",
        bind="query-params",
        label_visibility="collapsed",
        width="stretch",
    )
    keep(["source"])
    chosen = {"Gallery": _from_gallery, "Files": _from_files, "Camera": _from_camera}[source](config)
    held = [sample for sample in st.session_state.get("shown", []) if sample.modality == "image"]
    if not chosen and not held and (linked := find(config, st.session_state["sample"] or "")):
        held = [linked]
    if not chosen and held:
        st.caption(f"Still showing: {escape(', '.join(sample.name for sample in held[:3]))}")
    samples = chosen or held
    st.session_state["shown"] = samples
    if samples:
        put_in_link("sample", samples[min(st.session_state.get("row") or 0, len(samples) - 1)].address)
    return samples


def _from_gallery(config: dict[str, Any]) -> list[Sample]:
    pictures = gallery(config)
    if not pictures.all:
        st.info("No bundled pictures were found. Drop in a file of your own, or take a picture.")
        return []
    sample = find(config, st.session_state["sample"] or "") or (pictures.foreign or pictures.belonging)[0]
    st.session_state["sample"] = sample.address
    summary = config.get("summary") or "what the detector knows"
    for key, label, group in (
        ("belonging", f"In-distribution: {summary}", pictures.belonging),
        ("foreign", "Something else", pictures.foreign),
    ):
        if group:
            st.session_state[key] = sample.address if sample in group else None
            thumbnails(label, group, key, lambda key=key: _take(key))
    return [sample]


def _take(key: str) -> None:
    """A click on the chosen picture would unselect it; the page keeps it."""
    if address := st.session_state[key]:
        st.session_state["sample"] = address
        st.session_state["draw"] = None


def _from_files(config: dict[str, Any]) -> list[Sample]:
    samples = uploads(
        image_sample, "Pictures", "PNG, JPEG, WebP, BMP, TIFF or GIF, up to 20 MB each. One or many."
    )
    samples = [sample for sample in samples if sample.modality == "image"]
    refused(st.session_state.get("refused", []))
    wanted = st.session_state["sample"] or ""
    if wanted.startswith("file-") and wanted not in [sample.address for sample in samples]:
        st.info(
            "This link was made with somebody's own file, which a link cannot carry. Drop the same file here to see the "
            f"same view; its fingerprint begins with {escape(wanted.removeprefix('file-')[:12])}."
        )
    elif not samples:
        st.caption("Drop in one picture or many. They are kept for your session only.")
    return samples


def _from_camera(config: dict[str, Any]) -> list[Sample]:
    shot = st.camera_input("Take a picture", label_visibility="collapsed")
    if shot is None:
        st.caption("Hold something in front of the camera and take a picture of it.")
        return []
    try:
        return [image_sample("camera picture", shot.getvalue())]
    except InputError as error:
        refused([str(error)])
        return []
