"""Sounds made from formulas: tones, noise, claps, plucked strings. Free to pass on, and nothing like speech.

Each function gives mono float32 samples with a peak of 1; randomness comes from the generator it is given.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from idecode_core.audio.read import Samples

Generator = np.random.Generator
PEAK = 0.9


def normalised(wave: NDArray[np.floating], peak: float = 1.0) -> Samples:
    loudest = float(np.abs(wave).max())
    return (wave * (peak / loudest if loudest else 0.0)).astype(np.float32)


def tone(seconds: float, rate: int, *, generator: Generator) -> Samples:
    """A steady or gliding tone with a few overtones."""
    t = np.arange(round(seconds * rate)) / rate
    start, end = generator.uniform(150, 1500), generator.uniform(150, 1500)
    if generator.random() < 0.5:
        end = start
    phase = 2 * np.pi * (start * t + (end - start) * t**2 / (2 * seconds))
    overtones = generator.uniform(0, 1, size=4) / np.arange(1, 5)
    overtones[0] = 1.0
    return normalised(sum((a * np.sin((i + 1) * phase) for i, a in enumerate(overtones)), np.zeros_like(t)))


def noise(seconds: float, rate: int, *, generator: Generator) -> Samples:
    """Steady noise, from white to deep brown."""
    white = generator.standard_normal(round(seconds * rate))
    return normalised(lfilter([1.0], [1.0, -generator.uniform(0, 0.98)], white))


def claps(seconds: float, rate: int, *, generator: Generator) -> Samples:
    """A few short bursts of noise around 1 to 2 kHz that die away."""
    wave = np.zeros(round(seconds * rate))
    count = int(generator.integers(1, 5))
    for start in generator.uniform(0, 0.85 * seconds, size=count):
        length = round(generator.uniform(0.03, 0.12) * rate)
        burst = generator.standard_normal(length) * np.exp(-np.arange(length) / (0.2 * length))
        pole = 0.9 * np.exp(2j * np.pi * generator.uniform(900, 2200) / rate)
        burst = lfilter([1.0, -1.0], [1.0, -2 * pole.real, abs(pole) ** 2], burst)
        first = round(start * rate)
        piece = burst[: len(wave) - first]
        wave[first : first + len(piece)] += piece / np.abs(burst).max()
    return normalised(wave)


def plucked_string(seconds: float, rate: int, *, generator: Generator) -> Samples:
    """One to three plucked strings (Karplus and Strong 1983): a burst of noise in a loop that averages neighbours."""
    wave = np.zeros(round(seconds * rate))
    for _ in range(int(generator.integers(1, 4))):
        period = round(rate / generator.uniform(80, 600))
        burst = np.zeros_like(wave)
        first = round(generator.uniform(0, 0.4) * len(wave))
        burst[first : first + period] = generator.uniform(-1, 1, size=len(burst[first : first + period]))
        loop = np.zeros(period + 2)
        loop[0], loop[period], loop[period + 1] = 1.0, -0.498, -0.498
        wave += lfilter([1.0], loop, burst)
    return normalised(wave)


MAKERS: dict[str, Callable[..., Samples]] = {
    "tone": tone,
    "noise": noise,
    "claps": claps,
    "plucked string": plucked_string,
}


def in_a_room(wave: Samples, *, generator: Generator) -> Samples:
    """The wave at a random level with faint background noise, as if recorded: 20 to 50 dB below it."""
    hiss = normalised(
        lfilter([1.0], [1.0, -generator.uniform(0.3, 0.95)], generator.standard_normal(len(wave)))
    )
    level = 10 ** (-generator.uniform(0, 18) / 20)
    mixed = wave + hiss * 10 ** (-generator.uniform(20, 50) / 20)
    return normalised(mixed, PEAK * level)
