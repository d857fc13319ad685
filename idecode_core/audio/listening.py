"""A sound, and its masked variants, for eyes and ears: spectrogram in dB, what the masks hide, Griffin-Lim.

Which masks moved the score of a sound: the mean score of draws that hide a cell, less that of draws that show it.
"""

import io
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import soundfile
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.audio.features import SMALLEST_POWER, LogMel, mel_spectrogram
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
    from librosa import frames_to_time, mel_frequencies  # slow to import

    decibels = features.decibels(sound.at(features.sample_rate).samples).numpy()
    per_frame = float(frames_to_time(1, sr=features.sample_rate, hop_length=features.hop))
    # also of the first and last band
    edges = mel_frequencies(features.bands + 2, fmax=features.sample_rate / 2)
    return Spectrogram(decibels, per_frame, edges[1:-1])


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
def _from_mel(features: LogMel) -> Tensor:
    """(bins, bands), once for all sounds; torchaudio's InverseMelScale solves the same least squares for each sound anew."""
    mel = mel_spectrogram(features.sample_rate, features.fft, features.hop, features.bands)
    inverse: Tensor = torch.linalg.pinv(mel.mel_scale.fb.T)
    return inverse


def audible(
    decibels: NDArray[np.float32], features: LogMel, hidden: NDArray[np.bool_] | None = None
) -> Samples:
    """Samples whose log-mel spectrogram is close to this one (Griffin and Lim 1984); hidden cells are silent."""
    from torchaudio.functional import griffinlim

    power = 10 ** (torch.from_numpy(decibels) / 10)
    if hidden is not None:
        power = power.masked_fill(torch.from_numpy(hidden), SMALLEST_POWER)
    linear = (_from_mel(features) @ power).clamp_min(0)
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


Floats = NDArray[np.float64]


def mask_effects(hidden: NDArray[np.bool_], scores: Floats) -> Floats:
    """hidden (n, bands, frames) and the scores of the n draws -> (bands, frames); NaN where all draws hide it, or none.

    >>> hidden = np.array([[[True, False]], [[False, False]], [[True, False]]])
    >>> mask_effects(hidden, np.array([3.0, 1.0, 5.0]))
    array([[ 3., nan]])
    """
    times = hidden.sum(axis=0)  # how many draws hide each cell
    with_it = np.tensordot(scores, hidden, axes=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = with_it / times - (scores.sum() - with_it) / (len(scores) - times)
    return np.where((times > 0) & (times < len(scores)), effect, np.nan)
