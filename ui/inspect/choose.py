"""Where the inputs of the Inspect page come from: the gallery, the visitor's files, camera or microphone.

What the model takes in of the sample that is looked at is kept beside its scores, so that nothing is decoded twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.detector import Detector
from idecode_core.draws import Prepared
from idecode_core.files.archives import File
from idecode_core.folder.settings import FolderSettings
from idecode_core.scorer import Inspected
from ui.frame import links, session
from ui.frame.cache import get_configs, remembered
from ui.frame.detectors import in_order
from ui.frame.links import choose_sample, link_value, one_of, put_in_link
from ui.frame.messages import escape, refused
from ui.frame.pictures import LARGE
from ui.frame.samples import Modality, Sample, modality_of
from ui.frame.scores import MAX_INSPECTED, take_prepared, vector_store
from ui.frame.uploads import check_files, is_folder, receive_files, uploader

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
        others = [file for file in held if file.name.lower().endswith(other_extensions(modality))]
        st.session_state["other_files"] = others
        keep_files([file for file in held if file not in others], modality)
    refused(st.session_state.get("refused", []))
    return [sample for sample in st.session_state.get("uploads", []) if sample.modality is modality]


def other_extensions(modality: Modality) -> tuple[str, ...]:
    """Of files that only a detector of the other kind takes."""
    from ui.frame.pictures import PICTURES
    from ui.frame.sounds import SOUNDS

    other = PICTURES if modality is SOUNDS else SOUNDS
    return tuple(set(other.extensions) - set(modality.extensions))


def keep_files(files: Sequence[Any], modality: Modality) -> None:
    """Decode an upload and hold it for this session."""
    taken = receive_files(files, KEY, modality)
    samples, sentences = taken["samples"], taken["sentences"]
    if len(samples) > MOST:
        sentences.append(
            f"{len(samples):,} files came; the first {MOST:,} are kept. Use `idecode score` on the command line for more."
        )
    st.session_state["uploads"], st.session_state["refused"] = samples[:MOST], sentences


def clear() -> None:
    """Forget what is shown: the page must not go on judging something that was replaced."""
    st.session_state["uploads"], st.session_state["refused"] = [], []
    st.session_state["shown"] = []
    if not str(st.session_state.get("sample") or "").startswith("file-"):
        st.session_state["sample"] = None
        put_in_link("sample", None)


LONGEST = 80  # characters of an address in a link
NAMES = {"sample": "the sample", "versus": "a second opinion by", "draw": "draw"}
"""What a link carries besides the settings, and what a notice calls it."""


def choose_samples(config: FolderSettings) -> list[Sample]:
    """What the visitor wants to look at. Empty only when there is nothing yet; what was shown last stays otherwise."""
    modality = modality_of(config)
    st.session_state.setdefault("sample", linked_address())
    key = f"{modality.prefix}source"
    sources = {
        **session.sources(),
        "Gallery": from_gallery,
        "Files": from_files,
        modality.capture.source: captured,
    }
    source = one_of(f"{modality.thing.capitalize()} from", sources, key, width="stretch")
    chosen = sources[source](config, modality)
    held = [sample for sample in st.session_state.get("shown", []) if sample.modality is modality]
    if not chosen and not held and (linked := modality.find(config, st.session_state["sample"] or "")):
        held = [linked]
    if not chosen and held:
        st.caption(f"Still showing: {escape(', '.join(sample.name for sample in held[:3]))}")
    samples = chosen or held
    st.session_state["shown"] = samples
    return samples


def offer_to_switch(config: FolderSettings) -> bool:
    """Whether files of the other kind wait: a click, and a detector that takes them does."""
    waiting, configs = [file.name for file in st.session_state.get("other_files", ())], get_configs()
    other = next((name for name in in_order(configs) if configs[name].modality != config.modality), None)
    if not waiting or other is None:
        return False
    things = modality_of(configs[other]).plural
    with st.container(horizontal=True, vertical_alignment="center", key="switch"):
        st.info(
            f"{escape(', '.join(waiting[:3]))}: these are {things}, and **{escape(config.name)}** takes "
            f"{modality_of(config).plural}.",
            icon=":material/swap_horiz:",
        )
        st.button(
            f"Use {other} for them", key="switch_detector", type="primary", on_click=_switch, args=(other,)
        )
    return True


def _switch(name: str) -> None:
    """The files that waited are taken in by the other detector's kind."""
    st.session_state["detector"] = name
    modality = modality_of(get_configs()[name])
    st.session_state[f"{modality.prefix}source"] = "Files"
    keep_files(st.session_state.pop("other_files", ()), modality)


def linked_address() -> str | None:
    """The address in the link, if it can be one: a number in another script is none."""
    address = link_value("sample") or ""
    return address if address.isascii() and 0 < len(address) <= LONGEST else None


def explain_unmet_link(wanted: Mapping[str, str], sample: Sample) -> None:
    """A sentence for each thing that the link asks for and that is not what is shown."""
    shown = {"sample": sample.address, "versus": st.session_state.get("versus"), "draw": link_value("draw")}
    why = {
        "sample": "which is not among those that come with the project, or not for this detector",
        "versus": "which is not here, or takes other files than this detector",
        "draw": "which is none of the draws of this view",
    }
    links.explain_unmet_link(
        "inspect", wanted, {key: value or "none" for key, value in shown.items()}, why, NAMES
    )


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
    elif st.session_state.get("refused") and not st.session_state.get("uploads"):
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


def model_input(detector: Detector, sample: Sample, seed: int) -> Prepared:
    key = (detector, seed, sample.content_hash)
    return remembered("input_store", MAX_INSPECTED, key, lambda: take_prepared(detector, sample, seed))


def look_at(detector: Detector, sample: Sample, seed: int) -> Inspected:
    """One sample in full at n_max; its score vector comes from the same pass, if it has none yet."""
    key, n_max = (detector, seed, sample.content_hash), detector.calibration.n_max
    point = model_input(detector, sample, seed)
    inspected = remembered(
        "inspected_store", MAX_INSPECTED, key, lambda: detector.inspect(point, n=n_max, seed=seed)
    )
    vector_store().setdefault(key, inspected.score_vector)
    return inspected


def input_pictures(point: Prepared) -> Iterator[NDArray[np.uint8]]:
    """Pixels (size, size, 3) that models see: one picture, or of a merged detector those that differ."""
    seen: list[NDArray[np.uint8]] = []
    for part in point.x if isinstance(point.x, tuple) else (point,):
        x = part.x
        if (
            isinstance(x, np.ndarray)
            and x.dtype == np.uint8
            and not any(np.array_equal(x, other) for other in seen)
        ):
            seen.append(x)
            yield x


def as_the_model_sees_it(detector: Detector, sample: Sample, seed: int) -> None:
    """The original beside the resized input."""
    seen = list(input_pictures(model_input(detector, sample, seed)))
    if not seen:
        return
    with st.container(horizontal=True, key="model_input"):
        with st.container(width=LARGE):
            st.image(sample.picture, width=LARGE, alt=f"{sample.name}, as it came")
            st.caption("As it came")
        for pixels in seen:
            h, w = pixels.shape[:2]
            grey = " without colour" if (pixels == pixels[..., :1]).all() else ""
            with st.container(width=LARGE):
                st.image(pixels, width=LARGE, alt=f"{sample.name}, as the model sees it")
                st.caption(f"As the model sees it: the middle square at {w} x {h} pixels{grey}")
