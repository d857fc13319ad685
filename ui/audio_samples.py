"""Sounds as samples of the app: checked, hashed, with a small picture of their spectrogram."""

from pathlib import Path

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core.sounds import Sound, read_sound
from ui.samples import Sample, hashed_sample

RATE, COLUMNS = 16_000, 128


def sound_sample(name: str, data: bytes, *, address: str = "", truth: str = "") -> Sample:
    """Check and hash a sound file; an InputError says in one sentence why it cannot be used."""
    sound = read_sound(data, name=name)
    return hashed_sample(
        name, data, sound.samples, picture(sound), address=address, truth=truth, modality="audio"
    )


def picture(sound: Sound) -> NDArray[np.uint8]:
    """The spectrogram of the whole sound at about COLUMNS x 64 pixels, standardised by itself: any detector may look later."""
    from idecode_core.features import LogMel
    from idecode_core.spectrogram_picture import spectrogram_picture

    samples = sound.at(RATE).samples
    features = LogMel(RATE, fft=1024, hop=max(64, len(samples) // COLUMNS))
    decibels = features.decibels(samples)
    spread = float(decibels.std()) or 1.0
    return spectrogram_picture(((decibels - decibels.mean()) / spread)[None])


@st.cache_resource(show_spinner=False, max_entries=128)
def bundled_sample(name: str, path: str, address: str, truth: str) -> Sample:
    """A sound that comes with the project."""
    return sound_sample(name, Path(path).read_bytes(), address=address, truth=truth)
