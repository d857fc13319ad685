"""A visitor's files, few or many: each is decoded once, and each bad one costs one sentence while the others go through.

An upload replaces the one before it as a whole, also when something goes wrong on the way.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import repeat
from typing import Any, TypeVar

import streamlit as st

from idecode_core.errors import IdecodeError, InputError
from idecode_core.files.archives import File, read_files
from idecode_core.files.names import ARCHIVE_BYTES, IMAGE_BYTES, SCORES_BYTES, UNPACKED_BYTES
from ui.frame.links import one_of
from ui.frame.messages import refused
from ui.frame.pictures import PICTURES
from ui.frame.samples import Modality, Sample, data_uri, decoded_sample

log = logging.getLogger("idecode.app")

T = TypeVar("T")

MB = 2**20
WAYS = ("Files or a zip", "A folder")
SHOWN = 14  # thumbnails
PROGRESS_FROM = 21  # files; fewer are checked before a bar could be read
CHECKED = "_checked"
"""Ending of the keys under which the files of one uploader are kept."""


def many_files(
    label: str,
    key: str,
    modality: Modality,
    *,
    folder: bool = False,
    compact: bool = False,
    copies: bool = False,
) -> list[Sample]:
    """Files for a set: loose, zipped or a folder; kept for this session, over page changes too. `copies` stay where a source is
    to be known as it is: what it sends often today it sends often tomorrow."""
    files, changed = uploader(
        label,
        key,
        widget=f"{key}_{'folder' if folder else 'files'}",
        accept_multiple_files="directory" if folder else True,
        max_upload_size=ARCHIVE_BYTES // MB,
        help=f"Many {modality.plural}, or a zip of them: {', '.join(modality.extensions)}. {modality.formats} A zip may have "
        f"{ARCHIVE_BYTES // MB} MB, and all zips of your session together unpack to {UNPACKED_BYTES // MB:,} MB. They are kept for "
        "your session only.",
    )
    if changed:
        # Whatever happens now, the files of the upload before are not used.
        st.session_state[key + CHECKED] = {}
        st.session_state[key + CHECKED] = receive_files(files, key, modality, copies=copies)
    store = st.session_state.get(key + CHECKED, {})
    if store.get("modality") is not modality:  # nothing yet, or another kind of detector was chosen
        return []
    samples, sentences = store["samples"], store["sentences"]
    refused(sentences)
    if samples:
        st.markdown(f"**{len(samples):,} {modality.plural if len(samples) > 1 else modality.thing} ready.**")
        if not compact:
            st.image([data_uri(sample.thumbnail) for sample in samples[:SHOWN]], width=56)
    elif sentences:
        st.markdown(
            "**No file is ready:** none of this upload could be used, and it took the place of the one before."
        )
    return list(samples)


def receive_files(
    files: Sequence[Any], key: str, modality: Modality, *, copies: bool = False
) -> dict[str, Any]:
    """What an uploader holds, as samples and sentences; an error of the program is a sentence too."""
    samples: list[Sample] = []
    try:
        contents = read_files(
            [File(file.name, file.getvalue()) for file in files], modality.extensions, room_left(key)
        )
        readable, sentences = check_files(contents.files, modality)
        samples, about_copies = (readable, []) if copies else without_copies(readable)
        sentences = [*contents.refused, *sentences, *about_copies]
    except IdecodeError:
        raise
    except Exception:
        log.exception("Unexpected error while an upload was read")
        sentences = [
            "The whole upload: something went wrong in the program, not in what you did; the details are in the server's log."
        ]
    return {"samples": samples, "sentences": sentences, "modality": modality}


def room_left(key: str) -> int:
    """How many bytes the archives of one uploader may unpack to: what the session's other uploaders hold is taken."""
    others = (
        store
        for name, store in st.session_state.items()
        if str(name).endswith(CHECKED) and name != key + CHECKED and isinstance(store, dict)
    )
    taken = sum(len(sample.data) for store in others for sample in store.get("samples", ()))
    return max(UNPACKED_BYTES - taken, 0)


def check_files(files: Sequence[File], modality: Modality) -> tuple[list[Sample], list[str]]:
    """The samples that could be read, and a sentence for each file that could not."""
    from ui.frame.scores import sample_of_upload

    samples, sentences = [], []
    bar = st.progress(0.0, "Checking the files ...") if len(files) >= PROGRESS_FROM else None
    for i, file in enumerate(files):
        try:
            samples.append(sample_of_upload(modality, file.name, file.data))
        except InputError as error:
            sentences.append(str(error))
        except IdecodeError:  # the detector's, not the file's
            raise
        except Exception:
            log.exception("Unexpected error while a file was read")
            sentences.append(f"{file.name}: an error in the program, see the server's log. Please report it.")
        if bar:
            bar.progress((i + 1) / len(files))
    if bar:
        bar.empty()
    return samples, sentences


def without_copies(samples: Sequence[Sample]) -> tuple[list[Sample], list[str]]:
    """Each content once, and a sentence for each further file that has it."""
    kept: dict[str, Sample] = {}
    sentences = []
    for sample in samples:
        first = kept.setdefault(sample.content_hash, sample)
        if first is not sample:
            sentences.append(f"{sample.name}: has the same content as {first.name}; one copy counts.")
    return list(kept.values()), sentences


def uploader(label: str, key: str, *, widget: str = "", **more: Any) -> tuple[Any, bool]:
    """What an uploader holds, and whether the visitor has just changed that.

    It forgets its files when the page changes; only what the visitor does to it counts as a change.
    """
    changed = f"{key}_changed"
    held = st.file_uploader(
        label,
        key=widget or key,
        on_change=st.session_state.__setitem__,
        args=(changed, True),
        **more,
    )
    return held, bool(st.session_state.pop(changed, False))


def one_picture(label: str, key: str, help_text: str, **more: Any) -> Sample | None:
    """A picture of the visitor's, decoded when it arrives and kept for this session; a bad one is one sentence, and what was there
    is gone."""
    types, most = list(PICTURES.extensions), IMAGE_BYTES // MB
    file, changed = uploader(label, key, type=types, max_upload_size=most, help=help_text, **more)
    if changed:
        kept = st.session_state[f"{key}_kept"] = {}
        if file is not None:
            try:
                data = file.getvalue()
                decoded = PICTURES.read(data, file.name)
                kept["sample"] = decoded_sample(PICTURES, file.name, data, decoded)
            except InputError as error:
                kept["refused"] = [str(error)]
    kept = st.session_state.get(f"{key}_kept", {})
    refused(kept.get("refused", []))
    sample: Sample | None = kept.get("sample")
    return sample


def is_folder(key: str) -> bool:
    """How the visitor brings files: as a folder, or loose and zipped."""
    return bool(one_of("Bring", WAYS, key, bind=None) == WAYS[1])


def score_files(
    name: str,
    slots: Mapping[str, tuple[str, str]],
    take: Callable[[str, bytes], T],
    places: Iterable[AbstractContextManager[Any]] = repeat(nullcontext()),
) -> dict[str, T]:
    """Slot -> what `take` made of the name and content of the file that came last; kept for this session.

    `slots` are the labels and explanations of the uploaders, `places` where they are drawn.
    """
    kept: dict[str, T] = st.session_state.setdefault(f"{name}_score_files", {})
    for place, (slot, (label, help_text)) in zip(places, slots.items(), strict=False):
        with place:
            file, changed = uploader(
                label, f"{name}_{slot}", help=help_text, max_upload_size=SCORES_BYTES // MB
            )
        if changed:
            kept.pop(slot, None)
            if file is not None:
                kept[slot] = take(file.name, file.getvalue())
    return kept
