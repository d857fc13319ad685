"""Pictures on the pages: bundled ones to try, the camera, and how a picture and its variants are shown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from idecode_core.errors import DataError
from idecode_core.files.names import IMAGE_BYTES
from idecode_core.folder.settings import FolderSettings
from idecode_core.image.read import EXTENSIONS, read_image
from idecode_core.image.sets import class_names, dataset_and_class, load_images
from ui.frame.messages import escape
from ui.frame.samples import Capture, Gallery, Modality, Sample, data_uri, decoded_sample, png

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from idecode_core.scorer import Inspected, Variant

SETS: dict[str, tuple[str, ...]] = {  # dataset -> what its classes are called; colour first
    "numbers": ("drawn house number",),
    "photos": ("temple", "flower"),
    "cifar10": class_names("cifar10"),
    "fashion": class_names("fashion"),
    "digits": tuple(f"digit {digit}" for digit in range(10)),
    "textures": ("stripes", "checkers", "noise", "blobs", "gradient"),
}
BELONGS = "in-distribution"
FIRST = "cifar10-sample-60"
"""A dog: for a detector of such photographs the page begins with something that passes."""
PICTURES_ID = 10
PICTURES_OOD = 3  # of each other set
WIDTH = 104  # pixels
LARGE = 200  # pixels of an enlarged variant


@st.cache_resource(show_spinner=False, hash_funcs={FolderSettings: lambda config: config.dataset})
def gallery(config: FolderSettings) -> Gallery:
    """Some pictures that belong (iD) and some that do not (OOD), as far as config.json says what belongs."""
    dataset = config.dataset
    groups: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for name in SETS:
        try:
            samples = [bundled(name, index, dataset) for index in _variety(name, dataset)]
        except DataError:
            continue  # a set that is not here is not offered
        for sample in samples:
            shown = f"![{sample.name}]({data_uri(sample.thumbnail)})"
            groups[sample.truth != BELONGS][sample.address] = shown
    title = "Something else" if dataset else "Pictures to try"
    first = next(iter({**groups[1], **groups[0]}), "")
    return Gallery(*groups, FIRST if FIRST in groups[0] else first, title)


def _variety(name: str, dataset: str) -> list[int]:
    """Different classes first, so that a handful shows the variety of the set; where one class of it belongs, that one, and
    one picture of each other class."""
    y = load_images(f"{name}-sample").y
    order = np.argsort([np.count_nonzero(y[:i] == label) for i, label in enumerate(y)], kind="stable")
    dataset_name, only = dataset_and_class(dataset)
    if name != dataset_name:
        return [int(i) for i in order[:PICTURES_OOD]]
    if only is None:
        return [int(i) for i in order[:PICTURES_ID]]
    one_of_each = order[: len(np.unique(y))]
    return [
        *(int(i) for i in np.flatnonzero(y == only)[:PICTURES_ID]),
        *(int(i) for i in one_of_each if y[i] != only),
    ]


@st.cache_resource(show_spinner=False, max_entries=512)
def bundled(name: str, index: int, dataset: str) -> Sample:
    """One bundled picture, for a detector of a dataset; its address is the set's name and its place in it."""
    images = load_images(f"{name}-sample")
    dataset_name, only = dataset_and_class(dataset)
    belongs = name == dataset_name and only in (None, images.y[index])
    truth = (BELONGS if belongs else "something else") if dataset else ""
    title = f"{SETS[name][images.y[index]]} (no. {index})"
    pixels = images.x[index]
    return decoded_sample(PICTURES, title, png(pixels), pixels, address=f"{name}-sample-{index}", truth=truth)


def find(config: FolderSettings, address: str) -> Sample | None:
    return find_bundled(address, config.dataset)


def find_bundled(address: str, dataset: str) -> Sample | None:
    """The bundled picture of an address, for a detector of a dataset."""
    name, _, index = address.rpartition("-")
    is_number = index.isascii() and index.isdigit() and len(index) < 5
    if name.removesuffix("-sample") not in SETS or not is_number:
        return None
    try:
        return bundled(name.removesuffix("-sample"), int(index), dataset)
    except (DataError, IndexError):
        return None


def show(sample: Sample) -> None:
    st.image(sample.picture, width=WIDTH, alt=sample.name)


def enlarge(detector: "Detector", inspected: "Inspected", variants: "Sequence[Variant]") -> None:
    """The variants side by side, each with what was applied and what the model said."""
    with st.container(horizontal=True):
        for variant in variants:
            with st.container(width=LARGE):
                st.image(variant.image, width=LARGE, alt=f"{variant.member} {variant.applied}".strip())
                member = f"**{escape(variant.member)}**  \n" if variant.member else ""
                answer = f"  \n**Model says** {escape(variant.predicted)}" if variant.predicted else ""
                own_score = f"  \n**Score** {variant.score:.3g}" if len(variants) > 1 else ""
                st.caption(f"{member}**Applied** {escape(variant.applied)}{answer}{own_score}")


PICTURES = Modality(
    name="image",
    noun="image",
    thing="picture",
    icon="image",
    extensions=EXTENSIONS,
    formats=f"PNG, JPEG, WebP, BMP, TIFF or GIF, up to {IMAGE_BYTES // 2**20} MB each. One or many.",
    prefix="",
    width=WIDTH,
    capture=Capture(
        "Camera",
        "camera picture",
        "take a picture",
        "Hold something in front of the camera and take a picture of it.",
        lambda: st.camera_input("Take a picture", label_visibility="collapsed"),
    ),
    read=read_image,
    picture_of=lambda pixels: pixels,
    gallery=gallery,
    find=find,
    show=show,
    enlarge=enlarge,
)
