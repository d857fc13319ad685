"""A sound, and its masked variants, for eyes and ears: spectrogram in dB, what the masks hide, Griffin-Lim."""

import io
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import soundfile
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.audio.features import SMALLEST_POWER, LogMel, mel_centres, mel_filters
from idecode_core.audio.read import Samples, Sound
from idecode_core.transforms.specaugment import SpecAugment

ITERATIONS = 24  # of Griffin-Lim: more are hardly heard
LOUDEST = 0.9


@dataclass(frozen=True, eq=False)
class Spectrogram:
    """Log-mel spectrogram with its axes."""

    decibels: NDArray[np.float32]  # (bands, frames)
    seconds_per_frame: float
    hertz: NDArray[np.float64]  # (bands,): centres of the bands


def spectrogram(sound: Sound, features: LogMel) -> Spectrogram:
    """What the features see of a sound, before it is cut into blocks."""
    decibels = features.decibels(sound.at(features.sample_rate).samples).numpy()
    centres = mel_centres(features.sample_rate, features.bands)[1:-1]
    return Spectrogram(decibels, features.hop / features.sample_rate, centres)


def hidden_cells(
    features: LogMel, transforms: SpecAugment, parameters: Tensor, frames: int
) -> NDArray[np.bool_]:
    """Which cells of a spectrogram of so many frames one draw hides: (bands, frames).

    parameters (blocks, masks, 2) are one draw's. Where two blocks overlap, what either of them shows is not hidden.
    """
    in_time, in_frequency = transforms.keep(parameters)  # (blocks, block), (blocks, bands)
    covered = np.zeros((features.bands, max(frames, features.block)), bool)
    shown = np.zeros_like(covered)
    for start, t, f in zip(features.block_starts(frames), in_time.numpy(), in_frequency.numpy(), strict=True):
        covered[:, start : start + features.block] = True
        shown[:, start : start + features.block] |= f[:, None] & t
    return (covered & ~shown)[:, :frames]


@lru_cache(maxsize=8)
def _from_mel(sample_rate: int, fft: int, bands: int) -> Tensor:
    inverse: Tensor = torch.linalg.pinv(mel_filters(sample_rate, fft, bands))
    return inverse


def audible(
    decibels: NDArray[np.float32], features: LogMel, hidden: NDArray[np.bool_] | None = None
) -> Samples:
    """Samples whose log-mel spectrogram is close to this one (Griffin and Lim 1984); hidden cells are silent."""
    from torchaudio.functional import griffinlim  # only this needs torchaudio, which is slow to import

    power = 10 ** (torch.from_numpy(decibels) / 10)
    if hidden is not None:
        power = power.masked_fill(torch.from_numpy(hidden), SMALLEST_POWER)
    linear = (_from_mel(features.sample_rate, features.fft, features.bands) @ power).clamp_min(0)
    wave = griffinlim(
        linear,
        window=torch.hann_window(features.fft),
        n_fft=features.fft,
        hop_length=features.hop,
        win_length=features.fft,
        power=2.0,
        n_iter=ITERATIONS,
        momentum=0.99,
        length=features.hop * (decibels.shape[1] - 1),
        rand_init=False,  # the same picture sounds the same, and no global generator is touched
    )
    samples: Samples = wave.numpy()
    return samples


def wav_bytes(samples: Samples, sample_rate: int) -> bytes:
    """A 16-bit WAV file for a player, turned down if it would clip."""
    loudest = float(np.abs(samples).max(initial=0.0))
    file = io.BytesIO()
    soundfile.write(file, samples / max(1.0, loudest / LOUDEST), sample_rate, format="WAV", subtype="PCM_16")
    return file.getvalue()
