"""The visitor's files on the Inspect page: loose, zipped or a folder. An upload replaces the one before it as a whole."""

import streamlit as st

from ui.frame.links import put_in_link
from ui.frame.messages import refused
from ui.frame.modality import Modality
from ui.frame.samples import Sample
from ui.frame.uploads import is_folder, take_in, uploader

MOST = 1000
"""Files that are kept at once, with their pictures; the command line takes any number."""
KEY = "files"


def bring_files(modality: Modality) -> list[Sample]:
    """What the visitor brought last, kept for this session, over page changes too."""
    folder = is_folder("bring")
    held, changed = uploader(
        modality.plural.capitalize(),
        KEY,
        widget=f"{KEY}_folder" if folder else KEY,
        accept_multiple_files="directory" if folder else True,
        help=f"{modality.formats} A zip of them is opened. At most {MOST:,} files at once.",
        label_visibility="collapsed",
    )
    if changed:
        clear()  # whatever happens now, nothing of before is shown as if it were the new upload's
        taken = take_in(held, KEY, modality)
        samples, sentences = taken["samples"], taken["sentences"]
        if len(samples) > MOST:
            sentences.append(
                f"{len(samples):,} files came; the first {MOST:,} are kept. Use `idecode score` on the command line for more."
            )
        st.session_state["uploads"], st.session_state["refused"] = samples[:MOST], sentences
    refused(st.session_state.get("refused", []))
    return [sample for sample in st.session_state.get("uploads", []) if sample.modality is modality]


def nothing_readable() -> bool:
    """Whether files came and none of them could be used."""
    return bool(st.session_state.get("refused")) and not st.session_state.get("uploads")


def clear() -> None:
    """Forget what is shown: the page must not go on judging something that was replaced."""
    st.session_state["uploads"], st.session_state["refused"] = [], []
    st.session_state["shown"] = []
    if not str(st.session_state.get("sample") or "").startswith("file-"):
        st.session_state["sample"] = None
        put_in_link("sample", None)
