"""Bundled pictures to try: for each detector some that belong (iD) and some that do not (OOD)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from idecode_core.data import class_names, load_images
from idecode_core.errors import DataError
from ui.samples import Sample, data_uri, image_sample, png

SETS: dict[str, tuple[str, ...]] = {  # name -> what its classes are called
    "fashion-sample": class_names("fashion"),
    "cifar10-sample": class_names("cifar10"),
    "digits-sample": tuple(f"digit {digit}" for digit in range(10)),
    "photos-sample": ("temple", "flower"),
    "textures-sample": ("stripes", "checkers", "noise", "blobs", "gradient"),
}
PICTURES_ID = 10
PICTURES_OOD = 3  # of each other set


@dataclass(frozen=True)
class Gallery:
    """The pictures offered for one detector."""

    belonging: tuple[Sample, ...]
    foreign: tuple[Sample, ...]

    @property
    def all(self) -> dict[str, Sample]:
        return {sample.address: sample for sample in (*self.belonging, *self.foreign)}


def gallery(config: dict[str, Any]) -> Gallery:
    """The gallery of a detector; a detector is matched with its set by the first word of its name."""
    return _gallery(str(config["name"]).split("-")[0])


@st.cache_resource(show_spinner=False)
def _gallery(family: str) -> Gallery:
    belonging: list[Sample] = []
    foreign: list[Sample] = []
    for name in SETS:
        is_id = name.startswith(f"{family}-")
        try:
            (belonging if is_id else foreign).extend(_pictures(name, is_id))
        except DataError:
            continue  # a set that is not here is not offered
    return Gallery(tuple(belonging), tuple(foreign))


def _pictures(name: str, is_id: bool) -> list[Sample]:
    """Different classes first, so that a handful shows the variety of the set."""
    images = load_images(name)
    order = np.argsort([np.count_nonzero(images.y[:i] == y) for i, y in enumerate(images.y)], kind="stable")
    return [picture(name, int(i), is_id) for i in order[: PICTURES_ID if is_id else PICTURES_OOD]]


@st.cache_resource(show_spinner=False, max_entries=512)
def picture(name: str, index: int, is_id: bool) -> Sample:
    """One bundled picture; its address is the set's name and its place in it."""
    images = load_images(name)
    kind = SETS[name][images.y[index]]
    truth = "in-distribution" if is_id else "something else"
    return image_sample(f"{kind} (no. {index})", png(images.x[index]), address=f"{name}-{index}", truth=truth)


def find(config: dict[str, Any], address: str) -> Sample | None:
    """The bundled picture of an address from a link, in the gallery or not."""
    if address in (offered := gallery(config).all):
        return offered[address]
    name, _, index = address.rpartition("-")
    if name not in SETS or not index.isdigit():
        return None
    try:
        return picture(name, int(index), name.startswith(str(config["name"]).split("-")[0] + "-"))
    except (DataError, IndexError):
        return None


def thumbnails(label: str, samples: tuple[Sample, ...], key: str, on_change: Any) -> None:
    """Small pictures to choose one of; the choice is in st.session_state[key]."""
    pictures = {sample.address: f"![{sample.name}]({data_uri(sample.thumbnail)})" for sample in samples}
    st.pills(label, list(pictures), format_func=pictures.__getitem__, key=key, on_change=on_change, wrap=True)
