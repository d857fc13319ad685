"""Where sounds come from: the gallery, the visitor's files, the microphone."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from idecode_core.errors import InputError
from idecode_core.gallery_sounds import gallery_sounds
from ui.audio_samples import bundled_sample, sound_sample
from ui.links import link_value, put_in_link
from ui.messages import escape, refused
from ui.samples import Sample, uploads

SOURCES = ("Gallery", "Files", "Microphone")
BUNDLED_FOR = "spoken-digits"
"""The detector whose in-distribution sounds are bundled; for others the gallery only holds things to try."""
FORMATS = "WAV, FLAC, OGG, Opus or MP3, up to 60 seconds each. One or many."


def choose_sounds(config: dict[str, Any]) -> list[Sample]:
    """What the visitor wants to hear. Empty only when there is nothing yet; what was shown last stays otherwise."""
    st.session_state.setdefault("sample", link_value("sample"))
    source = st.segmented_control(
        "Sound from",
        SOURCES,
        default=SOURCES[0],
        required=True,
        key="sound_source",
        bind="query-params",
        label_visibility="collapsed",
        width="stretch",
    )
    chosen = {"Gallery": _from_gallery, "Files": _from_files, "Microphone": _from_microphone}[source](config)
    held = [sample for sample in st.session_state.get("shown", []) if sample.modality == "audio"]
    if not chosen and held:
        st.caption(f"Still showing: {escape(', '.join(sample.name for sample in held[:3]))}")
    samples = chosen or held
    st.session_state["shown"] = samples
    return samples


def _from_gallery(config: dict[str, Any]) -> list[Sample]:
    bundled = {f"sound-{sound.path.stem}": sound for sound in gallery_sounds()}
    if not bundled:
        st.info("No bundled sounds were found. Drop in a file of your own, or record something.")
        return []
    knows_them = str(config["name"]) == BUNDLED_FOR
    digits = [address for address, sound in bundled.items() if not sound.is_ood]
    others = [address for address, sound in bundled.items() if sound.is_ood]
    wanted = st.session_state["sample"]
    address = wanted if wanted in bundled else (digits if knows_them else others)[0]
    st.session_state["sample"] = address
    groups = [
        ("belonging_sounds", f"In-distribution: {config.get('summary')}", digits),
        ("foreign_sounds", "Something else", others),
    ]
    if not knows_them:
        groups = [("foreign_sounds", "Sounds to try", [*others, *digits])]
        st.caption(_nothing_bundled(config["scorer"]["classes"]))
    for key, label, addresses in groups:
        st.session_state[key] = address if address in addresses else None
        st.pills(
            label,
            addresses,
            format_func=lambda address: bundled[address].name,
            key=key,
            on_change=lambda key=key: _take(key),
            wrap=True,
        )
    put_in_link("sample", address)
    sound = bundled[address]
    truth = ("something else" if sound.is_ood else "in-distribution") if knows_them else ""
    return [bundled_sample(sound.name, str(sound.path), address, truth)]


def _nothing_bundled(classes: Sequence[str]) -> str:
    """What to do where the licence of the training sounds forbids to bundle some."""
    known = ", ".join(escape(name.replace("_", " ")) for name in classes[:4])
    more = f" and {len(classes) - 4} more" if len(classes) > 4 else ""
    return (
        f"This detector knows {known}{more}. Such recordings may not be passed on, so none is here: drop in your own "
        "under Files. The sounds below are things to try; most are none of its classes."
    )


def _take(key: str) -> None:
    """A click on the chosen sound would unselect it; the page keeps it."""
    if address := st.session_state[key]:
        st.session_state["sample"] = address
        st.session_state["draw"] = None


def _from_files(config: dict[str, Any]) -> list[Sample]:
    samples = [sample for sample in uploads(sound_sample, "Sounds", FORMATS) if sample.modality == "audio"]
    refused(st.session_state.get("refused", []))
    if samples:
        put_in_link("sample", samples[min(st.session_state.get("row") or 0, len(samples) - 1)].address)
    else:
        st.caption("Drop in one sound or many. They are kept for your session only.")
    return samples


def _from_microphone(config: dict[str, Any]) -> list[Sample]:
    recording = st.audio_input("Record a sound", label_visibility="collapsed", key="recording")
    if recording is None:
        st.caption(
            "Record a few seconds. A microphone sounds unlike studio files, and the detector may say so."
        )
        return []
    put_in_link("sample", None)
    try:
        return [sound_sample("recording", recording.getvalue())]
    except InputError as error:
        refused([str(error)])
        return []
