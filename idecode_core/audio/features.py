"""Log-mel features of sounds: what the audio model sees.

Short-time Fourier transform, mel filter bank, power to dB, then blocks of 128 frames, standardised by one mean
and one standard deviation of the proper training set. Plain torch: nothing here compiles on first use.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.errors import InputError, SettingError

SMALLEST_POWER = 1e-10  # digital silence counts as this, -100 dB
HERTZ_PER_MEL = 200 / 3
LOG_FROM_HERTZ = 1000.0
LOG_STEP = math.log(6.4) / 27


def hertz_to_mel(hertz: NDArray[np.float64]) -> NDArray[np.float64]:
    """Slaney's mel scale: linear to 1 kHz, logarithmic above."""
    logarithmic = (
        LOG_FROM_HERTZ / HERTZ_PER_MEL + np.log(np.maximum(hertz, LOG_FROM_HERTZ) / LOG_FROM_HERTZ) / LOG_STEP
    )
    return np.where(hertz < LOG_FROM_HERTZ, hertz / HERTZ_PER_MEL, logarithmic)


def mel_to_hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse of `hertz_to_mel`."""
    first_log = LOG_FROM_HERTZ / HERTZ_PER_MEL
    return np.where(
        mel < first_log, mel * HERTZ_PER_MEL, LOG_FROM_HERTZ * np.exp(LOG_STEP * (mel - first_log))
    )


def mel_centres(sample_rate: int, bands: int) -> NDArray[np.float64]:
    """Lower edge, centres and upper edge of the bands in Hz: (bands + 2,)."""
    top = hertz_to_mel(np.array([sample_rate / 2]))[0]
    return mel_to_hertz(np.linspace(0, top, bands + 2))


@lru_cache(maxsize=8)
def mel_filters(sample_rate: int, fft: int, bands: int) -> Tensor:
    """Triangular filters of equal area (Slaney): (bands, fft // 2 + 1), as in librosa and the paper's code."""
    edges = mel_centres(sample_rate, bands)
    bins = np.linspace(0, sample_rate / 2, fft // 2 + 1)
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    triangles = np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    return torch.from_numpy(triangles).float()


@dataclass(frozen=True)
class LogMel:
    """Features of a detector's sounds; the defaults are the paper's, the rate and the statistics its own."""

    sample_rate: int = 32_000
    bands: int = 64
    fft: int = 1024
    hop: int = 512
    block: int = 128
    """Frames of one block, what the model takes in at once."""
    shortest_rest: int = 32
    """A rest of fewer frames is cut away; a longer one becomes a block that overlaps the one before."""
    mean: float = 0.0
    std: float = 1.0
    """Statistics in dB of the proper training set."""

    def __post_init__(self) -> None:
        limits = {
            "sample_rate": 768_000,
            "bands": 512,
            "fft": 2**16,
            "hop": 2**16,
            "block": 2**14,
            "shortest_rest": 2**14,
        }
        for name, most in limits.items():
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise SettingError(
                    f"{name} of the features must be a whole number from 1 to {most:,}, got {value!r:.40}. Correct the settings."
                )
        if not (math.isfinite(self.mean) and math.isfinite(self.std) and self.std > 0):
            raise SettingError(
                f"mean and std of the features must be finite and std above 0, got {self.mean!r:.20} and {self.std!r:.20}. "
                "Correct the settings."
            )

    @property
    def block_seconds(self) -> float:
        return self.block * self.hop / self.sample_rate

    def decibels(self, samples: NDArray[np.float32]) -> Tensor:
        """Mono samples at this rate -> log-mel spectrogram in dB (bands, frames)."""
        if len(samples) <= self.fft // 2:  # the edges are mirrored, which takes half a window
            raise InputError(
                f"The sound has {len(samples)} samples at {self.sample_rate} Hz; expected more than {self.fft // 2}. "
                f"Use a longer recording."
            )
        wave = torch.from_numpy(np.ascontiguousarray(samples, np.float32))
        window = torch.hann_window(self.fft)
        spectrum = torch.stft(wave, self.fft, self.hop, window=window, return_complex=True)  # (bins, frames)
        power = mel_filters(self.sample_rate, self.fft, self.bands) @ spectrum.abs().square()
        return 10 * power.clamp_min(SMALLEST_POWER).log10()

    def blocks(self, samples: NDArray[np.float32]) -> Tensor:
        """Mono samples at this rate -> standardised blocks (blocks, bands, 128)."""
        return (self.cut(self.decibels(samples)) - self.mean) / self.std

    def cut(self, spectrogram: Tensor) -> Tensor:
        """(bands, frames) -> (blocks, bands, 128) by the paper's rule for the rest."""
        return torch.stack(
            [
                self.padded(spectrogram)[:, start : start + self.block]
                for start in self.block_starts(spectrogram.shape[1])
            ]
        )

    def block_starts(self, frames: int) -> list[int]:
        """The first frame of each block of a spectrogram with so many frames."""
        count, rest = divmod(frames, self.block)
        if count == 0:
            return [0]
        first = rest // 2 if rest < self.shortest_rest else 0  # a short rest goes, half at each end
        starts = [first + i * self.block for i in range(count)]
        return starts if rest < self.shortest_rest else [*starts, frames - self.block]

    def padded(self, spectrogram: Tensor) -> Tensor:
        """A clip shorter than a block is filled up with its own smallest value."""
        missing = self.block - spectrogram.shape[1]
        if missing <= 0:
            return spectrogram
        return torch.nn.functional.pad(spectrogram, (0, missing), value=float(spectrogram.min()))
