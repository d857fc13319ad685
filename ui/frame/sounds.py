"""Sounds on the pages: bundled ones to try, the microphone, player, waveform, spectrogram, masks, strange stretches."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.audio.read import EXTENSIONS, Sound, read_sound
from idecode_core.audio.sets import gallery_sounds
from idecode_core.files.names import SOUND_BYTES, SOUND_SECONDS
from idecode_core.folder.settings import FolderSettings
from ui.frame import pictures
from ui.frame.cache import remembered
from ui.frame.look import chart
from ui.frame.messages import escape
from ui.frame.samples import Capture, Gallery, Modality, Sample, decoded_sample

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from idecode_core.scorer import Inspected, Variant

BUNDLED = "spokendigits"
"""The dataset of which sounds are bundled; for others the gallery only holds things to try."""
WIDTH = 220  # pixels
RATE, COLUMNS = 16_000, 128  # of the small picture
MAX_DECODED = 4  # sounds that are held for the player and the waveform


def picture_of(sound: Sound) -> NDArray[np.uint8]:
    """The spectrogram of the whole sound at about COLUMNS x 64 pixels, standardised by itself: any detector may look later."""
    from idecode_core.audio.features import LogMel
    from idecode_core.audio.scorer import spectrogram_picture

    samples = sound.at(RATE).samples
    features = LogMel(RATE, fft=1024, hop=max(64, len(samples) // COLUMNS))
    decibels = features.decibels(samples)
    spread = float(decibels.std()) or 1.0
    return spectrogram_picture(((decibels - decibels.mean()) / spread)[None])


def gallery(config: FolderSettings) -> Gallery:
    """Digits and other things; only for a detector of spoken digits is it known which of them belong."""
    digits, others = (
        {_address(sound.path): sound.name for sound in gallery_sounds() if sound.is_ood == is_ood}
        for is_ood in (False, True)
    )
    if config.dataset == BUNDLED:
        return Gallery(digits, others, next(iter(digits), ""))
    return Gallery({}, {**others, **digits}, next(iter(others), ""), "Sounds to try", _note(config))


def _address(path: Path) -> str:
    return f"sound-{path.stem}"


def _note(config: FolderSettings) -> str:
    """What to do where the licence of the training sounds forbids to bundle some."""
    classes = config.classes
    if not classes or not config.dataset:
        return ""  # calibrated again: what belongs is no longer what the model was trained on
    known = ", ".join(escape(name.replace("_", " ")) for name in classes[:4])
    more = f" and {len(classes) - 4} more" if len(classes) > 4 else ""
    return (
        f"This detector knows {known}{more}. Such recordings may not be passed on, so none is here: drop in your own "
        "under Files. The sounds below are things to try; most are none of its classes."
    )


def find(config: FolderSettings, address: str) -> Sample | None:
    for sound in gallery_sounds():
        if _address(sound.path) == address:
            truth = "something else" if sound.is_ood else "in-distribution"
            return _bundled(sound.name, sound.path, truth if config.dataset == BUNDLED else "")
    return None


@st.cache_resource(show_spinner=False, max_entries=128)
def _bundled(name: str, path: Path, truth: str) -> Sample:
    data = path.read_bytes()
    return decoded_sample(
        SOUNDS, name, data, read_sound(data, name=name), address=_address(path), truth=truth
    )


def decoded(sample: Sample) -> Sound:
    """The sound that is shown, kept for as long as it is."""
    sound: Sound = remembered("sounds", MAX_DECODED, sample.content_hash, sample.decode)
    return sound


def show(sample: Sample) -> None:
    """A small picture and a player."""
    from idecode_core.audio.listening import wav_bytes

    sound = decoded(sample)
    st.image(sample.picture, width=WIDTH, alt=f"Spectrogram of {sample.name}")
    st.audio(wav_bytes(sound.samples, sound.sample_rate), format="audio/wav")


def closer(detector: "Detector", sample: Sample, inspected: "Inspected", n: int) -> None:
    """Waveform and spectrogram; for long sounds, how strange each stretch is."""
    from idecode_core.audio.listening import spectrogram
    from idecode_core.audio.scorer import InspectedSound, TakesSounds
    from idecode_core.plots import audio as figures

    if not isinstance(detector.scorer, TakesSounds) or not isinstance(inspected, InspectedSound):
        return  # several models that hear the sound differently
    features, sound = detector.scorer.features, decoded(sample)
    st.markdown("### What the model hears")
    st.caption(
        f"{sound.seconds:.1f} s at {sound.sample_rate:,} Hz, taken to {features.sample_rate:,} Hz. Brighter is louder."
    )
    chart(
        figures.waveform(sound.samples, sound.sample_rate), key="waveform", alt=f"Waveform of {sample.name}"
    )
    seen = spectrogram(inspected.clip.sound, features)
    chart(
        figures.spectrogram(seen.decibels, seen.seconds_per_frame, seen.hertz),
        key="spectrogram",
        alt=f"Spectrogram of {sample.name}",
    )
    blocks = inspected.by_block
    if len(blocks.scores) > 1:
        st.markdown("### Where it is strange")
        st.caption(
            f"Each stretch of {features.block_seconds:.1f} s on its own, with the same masks. Orange is above the band "
            "of whole calibration sounds. The verdict is about the whole recording; single stretches have no guarantee."
        )
        whole = detector.calibration.score_vectors[:, :n].mean(axis=1)
        chart(
            figures.block_scores(blocks.seconds, blocks.scores[:, :n], whole),
            key="block_chart",
            alt="Scores of each stretch of the recording over time",
        )


def enlarge(detector: "Detector", inspected: "Inspected", variants: "Sequence[Variant]") -> None:
    """The spectrogram with what is hidden, what the model said, and how the rest sounds."""
    from idecode_core.audio.listening import audible, hidden_cells, spectrogram, wav_bytes
    from idecode_core.audio.scorer import InspectedSound, TakesSounds
    from idecode_core.plots import audio as figures

    if not isinstance(detector.scorer, TakesSounds) or not isinstance(inspected, InspectedSound):
        return pictures.enlarge(detector, inspected, variants)
    (variant,) = variants
    features = detector.scorer.features
    seen = spectrogram(inspected.clip.sound, features)
    drawn = inspected.parameters[variant.draw]  # (blocks, masks, 2)
    hidden = hidden_cells(features, detector.scorer.transforms, drawn, seen.decibels.shape[1])
    chart(
        figures.spectrogram(seen.decibels, seen.seconds_per_frame, seen.hertz, hidden, height=230),
        key="variant_spectrogram",
        alt=variant.applied,
    )
    st.caption(f"**Applied** {escape(variant.applied)}  \n**Model says** {escape(variant.predicted)}")
    st.audio(wav_bytes(audible(seen.decibels, features, hidden), features.sample_rate), format="audio/wav")
    st.caption("The masked sound, rebuilt from its spectrogram (Griffin-Lim); what is hidden is silent.")


SOUNDS = Modality(
    name="audio",
    noun="sound",
    thing="sound",
    icon="graphic_eq",
    extensions=EXTENSIONS,
    formats=f"WAV, FLAC, OGG, Opus or MP3, up to {SOUND_SECONDS} seconds and {SOUND_BYTES // 2**20} MB each. One or many.",
    prefix="sound_",
    width=WIDTH,
    capture=Capture(
        "Microphone",
        "recording",
        "record one",
        "Record a few seconds. A microphone sounds unlike studio files, and the detector may say so.",
        lambda: st.audio_input("Record a sound", label_visibility="collapsed", key="recording"),
    ),
    read=lambda data, name: read_sound(data, name=name),
    picture_of=picture_of,
    gallery=gallery,
    find=find,
    show=show,
    enlarge=enlarge,
    closer=closer,
)
