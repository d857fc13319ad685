"""Log-mel features of sounds: what the audio model sees.

torchaudio's mel spectrogram in dB, then blocks of 128 frames, standardised by one mean and one standard deviation of
the proper training set.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.errors import InputError, SettingError

if TYPE_CHECKING:
    from torchaudio.transforms import MelSpectrogram

SMALLEST_POWER = 1e-10  # digital silence counts as this, -100 dB


@lru_cache(maxsize=8)
def mel_spectrogram(sample_rate: int, fft: int, hop: int, bands: int) -> "MelSpectrogram":
    """torchaudio's power in triangular bands of equal area on Slaney's mel scale, as in librosa and the paper's code."""
    from torchaudio.transforms import MelSpectrogram  # part of [audio], which pictures do without

    return MelSpectrogram(
        sample_rate, fft, hop_length=hop, n_mels=bands, mel_scale="slaney", norm="slaney", power=2.0
    )


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
        from torchaudio.functional import amplitude_to_DB

        mel = mel_spectrogram(self.sample_rate, self.fft, self.hop, self.bands)
        power = mel(torch.from_numpy(np.ascontiguousarray(samples, np.float32)))
        decibels: Tensor = amplitude_to_DB(power, multiplier=10, amin=SMALLEST_POWER, db_multiplier=0)
        return decibels

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
