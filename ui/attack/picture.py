"""The picture that is attacked: one of the gallery, or one that the visitor brings."""

import streamlit as st

from idecode_core.image.sets import load_images
from ui.frame.links import (
    asked,
    choose_sample,
    explain_unmet_link,
    link_value,
    one_of,
    put_in_link,
    say_not_carried,
)
from ui.frame.pictures import PICTURES, bundled, find_bundled
from ui.frame.samples import Sample, data_uri
from ui.frame.uploads import one_picture

SOURCES = ("Gallery", "File")
DATASET = "cifar10"
"""Of the bundled pictures: the victims know its classes."""
CHOSEN = "attack_picture"
"""Key under which the address of the chosen gallery picture is kept; in the link it is `picture`."""


def choose_picture() -> Sample | None:
    """What the visitor wants to attack."""
    source = one_of("Picture from", SOURCES, "attack_from", width="stretch")
    wanted = asked("attack_picture", ("picture",))
    sample = from_gallery() if source == SOURCES[0] else from_file()
    if sample is not None:
        put_in_link("picture", sample.address)
        why = {"picture": "which is not among those that come with the project"}
        explain_unmet_link(
            "attack_picture", wanted, {"picture": sample.address}, why, {"picture": "the picture"}
        )
    return sample


def from_gallery() -> Sample:
    """One of the bundled pictures; a link may lead to any of them, also to one that is not shown here."""
    from idecode_core.attacks.classic import GALLERY_PLACES

    samples = {sample.address: sample for sample in (bundled(DATASET, i, DATASET) for i in GALLERY_PLACES)}
    linked = st.session_state.setdefault(CHOSEN, link_value("picture") or "")
    of_dataset = linked.startswith(f"{DATASET}-sample-")
    chosen = (find_bundled(linked, DATASET) if of_dataset else None) or next(iter(samples.values()))
    st.session_state[CHOSEN] = chosen.address

    labels = {
        address: f"![{picture.name}]({data_uri(picture.thumbnail)})" for address, picture in samples.items()
    }
    choose_sample("belonging", "Photographs of CIFAR-10's test set", labels, chosen.address, CHOSEN)
    return chosen


def known_label(sample: Sample) -> int | None:
    """The class of a bundled picture; None of a visitor's."""
    if sample.address.startswith("file-"):
        return None
    return int(load_images(f"{DATASET}-sample").y[int(sample.address.rpartition("-")[2])])


def from_file() -> Sample | None:
    """One file of the visitor's."""
    help_text = PICTURES.formats.replace("One or many.", "One.") + " It is kept for your session only."
    sample = one_picture("A picture of your own", "attack_file", help_text, label_visibility="collapsed")
    wanted = link_value("picture") or ""
    if sample is None and wanted.startswith("file-"):
        say_not_carried(wanted)
    elif sample is None:
        st.caption("Drop in one picture of something that the victim knows.")
    return sample
