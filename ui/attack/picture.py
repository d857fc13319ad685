"""The picture that is attacked: one of the gallery, or one that the visitor brings."""

import streamlit as st

from idecode_core.errors import InputError
from idecode_core.files.limits import IMAGE_BYTES
from idecode_core.image.sets import load_images
from ui.frame.choices import one_of
from ui.frame.links import asked, carry_over, keep, link_value, put_in_link, say_unmet
from ui.frame.messages import escape, refused
from ui.frame.pictures import PICTURES, bundled
from ui.frame.samples import Sample, data_uri, decoded_sample
from ui.frame.uploads import uploader

SOURCES = ("Gallery", "File")
DATASET = "cifar10"
"""Of the bundled pictures: the victims know its classes."""
KEY = "attack_file"
CHOSEN = "attack_picture"
"""Key under which the address of the chosen gallery picture is kept; in the link it is `picture`."""


def choose_picture() -> Sample | None:
    """What the visitor wants to attack."""
    carry_over(["attack_from"])
    source = one_of("Picture from", SOURCES, "attack_from", width="stretch")
    keep(["attack_from"])
    wanted = asked("attack_picture", ("picture",))
    sample = from_gallery() if source == SOURCES[0] else from_file()
    if sample is not None:
        put_in_link("picture", sample.address)
        why = {"picture": "which is not among those that come with the project"}
        say_unmet("attack_picture", wanted, {"picture": sample.address}, why, {"picture": "the picture"})
    return sample


def from_gallery() -> Sample:
    """One of the bundled pictures; a link may lead to any of them, also to one that is not shown here."""
    from idecode_core.attacks.gallery import PLACES

    samples = {sample.address: sample for sample in (bundled(DATASET, i, DATASET) for i in PLACES)}
    linked = st.session_state.setdefault(CHOSEN, link_value("picture") or "")
    chosen = samples.get(linked) or any_bundled(linked) or next(iter(samples.values()))
    st.session_state[CHOSEN] = chosen.address

    def take() -> None:
        # A click on the chosen one would unselect it; the page keeps it.
        if clicked := st.session_state["belonging"]:
            st.session_state[CHOSEN] = clicked

    labels = {address: f"![{one.name}]({data_uri(one.thumbnail)})" for address, one in samples.items()}
    st.session_state["belonging"] = chosen.address if chosen.address in labels else None
    st.pills(
        "Photographs of CIFAR-10's test set",
        list(labels),
        format_func=labels.__getitem__,
        key="belonging",
        on_change=take,
        wrap=True,
    )
    return chosen


def any_bundled(address: str) -> Sample | None:
    """The bundled picture of an address, in the gallery or not."""
    index = address.removeprefix(f"{DATASET}-sample-")
    if index == address or not (index.isascii() and index.isdigit()) or len(index) > 4:
        return None
    return (
        bundled(DATASET, int(index), DATASET) if int(index) < len(load_images(f"{DATASET}-sample")) else None
    )


def known_label(sample: Sample) -> int | None:
    """The class of a bundled picture; None of a visitor's."""
    if sample.address.startswith("file-"):
        return None
    return int(load_images(f"{DATASET}-sample").y[int(sample.address.rpartition("-")[2])])


def from_file() -> Sample | None:
    """One file, decoded when it arrives and kept for this session; a bad one is one sentence, and what was there is gone."""
    file, changed = uploader(
        "A picture of your own",
        KEY,
        type=[extension.removeprefix(".") for extension in PICTURES.extensions],
        max_upload_size=IMAGE_BYTES // 2**20,
        help=PICTURES.formats.replace("One or many.", "One.") + " It is kept for your session only.",
        label_visibility="collapsed",
    )
    if changed:
        st.session_state["attack_upload"], st.session_state["attack_refused"] = None, []
        if file is not None:
            try:
                decoded = PICTURES.read(file.getvalue(), file.name)
                st.session_state["attack_upload"] = decoded_sample(
                    PICTURES, file.name, file.getvalue(), decoded
                )
            except InputError as error:
                st.session_state["attack_refused"] = [str(error)]
    refused(st.session_state.get("attack_refused", []))
    sample: Sample | None = st.session_state.get("attack_upload")
    wanted = link_value("picture") or ""
    if sample is None and wanted.startswith("file-"):
        st.info(
            "This link was made with somebody's own file, which a link cannot carry. Drop the same file here to see the same "
            f"view; its fingerprint begins with {escape(wanted.removeprefix('file-')[:12])}."
        )
    elif sample is None:
        st.caption("Drop in one picture of something that the victim knows.")
    return sample
