"""Many files of a visitor: loose, zipped or a folder; each is checked, and each bad one costs one sentence."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from idecode_core.archives import File, read_files
from idecode_core.errors import InputError
from ui.messages import refused
from ui.samples import Sample, data_uri, image_sample

MAX_UPLOAD = 200  # MB, for a zip; single files have limits of their own
SHOWN = 14  # thumbnails
SENTENCES = 12  # refusals that are shown in full


def extensions(modality: str) -> tuple[str, ...]:
    if modality == "audio":
        from idecode_core.sounds import EXTENSIONS as SOUNDS

        return tuple(SOUNDS)
    from idecode_core.images import EXTENSIONS as IMAGES

    return IMAGES


def reader(modality: str) -> Callable[[str, bytes], Sample]:
    """(name, data) -> Sample; raises InputError."""
    if modality == "audio":
        from ui.audio_samples import sound_sample

        return sound_sample
    return image_sample


def bring_files(
    label: str, key: str, modality: str, *, folder: bool = False, compact: bool = False
) -> list[Sample]:
    """An uploader and what is usable of its files. Checked once; kept for this session, over page changes too."""
    what = "sounds" if modality == "audio" else "pictures"
    files = st.file_uploader(
        label,
        accept_multiple_files="directory" if folder else True,
        key=f"{key}_{'folder' if folder else 'files'}",
        max_upload_size=MAX_UPLOAD,
        help=f"Many {what}, or a zip of them: {', '.join(extensions(modality))}. They are kept for your session only.",
        on_change=mark_changed,
        args=(key,),
    )
    store = st.session_state.setdefault(f"{key}_checked", {})
    if was_changed(key):
        samples, sentences = check_files([(file.name, file.getvalue()) for file in files], modality)
        store.update(samples=samples, sentences=sentences, modality=modality)
    if store.get("modality") != modality:  # another kind of detector was chosen
        return []
    samples, sentences = store.get("samples", []), store.get("sentences", [])
    if len(sentences) > SENTENCES:
        rest = len(sentences) - SENTENCES
        sentences = [*sentences[:SENTENCES], f"... and {rest} more for reasons like these."]
    refused(sentences)
    if samples:
        st.markdown(f"**{len(samples):,} {what if len(samples) > 1 else what[:-1]} ready.**")
        if not compact:
            st.image([data_uri(sample.thumbnail) for sample in samples[:SHOWN]], width=56)
    return list(samples)


def check_files(files: Sequence[tuple[str, bytes]], modality: str) -> tuple[list[Sample], list[str]]:
    """Open zips, decode every file once, leave out copies: what can be used, and a sentence for what cannot."""
    contents = read_files([File(name, data) for name, data in files], extensions(modality))
    samples: dict[str, Sample] = {}
    sentences = list(contents.refused)
    read = reader(modality)
    bar = st.progress(0.0, "Checking the files ...") if len(contents.files) > 20 else None
    for i, file in enumerate(contents.files):
        try:
            sample = read(file.name, file.data)
        except InputError as error:
            sentences.append(str(error))
            continue
        finally:
            if bar:
                bar.progress((i + 1) / len(contents.files))
        if sample.content_hash in samples:
            sentences.append(
                f"{file.name}: has the same content as {samples[sample.content_hash].name}; one copy counts."
            )
        else:
            samples[sample.content_hash] = sample
    if bar:
        bar.empty()
    return list(samples.values()), sentences


def mark_changed(key: str) -> None:
    """An uploader forgets its files when the page changes; only what the visitor does to it counts as a change."""
    st.session_state[f"{key}_changed"] = True


def was_changed(key: str) -> bool:
    return bool(st.session_state.pop(f"{key}_changed", False))


def content_key(samples: Sequence[Any]) -> str:
    """A name for a set of samples: the same content in the same order has the same name."""
    import hashlib

    return hashlib.sha256("".join(sample.content_hash for sample in samples).encode()).hexdigest()[:16]
