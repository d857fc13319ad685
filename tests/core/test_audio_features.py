"""Log-mel features against librosa, and the paper's rule for cutting blocks."""

import librosa
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from idecode_core.audio.features import LogMel
from idecode_core.errors import InputError


def noise(seconds: float, rate: int, seed: int = 0) -> np.ndarray:
    return (0.1 * np.random.default_rng(seed).standard_normal(round(seconds * rate))).astype(np.float32)


@pytest.mark.parametrize("rate", [8000, 16_000, 32_000])
def test_decibels_are_those_of_librosa(rate: int) -> None:
    wave = noise(2.0, rate)
    power = librosa.feature.melspectrogram(
        y=wave, sr=rate, n_fft=1024, hop_length=512, n_mels=64, pad_mode="reflect"
    )
    expected = librosa.power_to_db(power, top_db=None)
    np.testing.assert_allclose(LogMel(rate).decibels(wave).numpy(), expected, atol=1e-3)


def test_a_tone_is_loudest_in_the_band_that_holds_it() -> None:
    features = LogMel(16_000)
    t = np.arange(16_000) / 16_000
    loudest = int(features.decibels(np.sin(2 * np.pi * 2000 * t).astype(np.float32))[:, 10].argmax())
    edges = librosa.mel_frequencies(66, fmax=8000)
    assert edges[loudest] < 2000 < edges[loudest + 2]


def test_silence_is_the_floor_everywhere() -> None:
    assert torch.equal(LogMel(16_000).decibels(np.zeros(8000, np.float32)).unique(), torch.tensor([-100.0]))


def cut_as_in_the_paper(frames: list[int], block: int = 128, shortest: int = 32) -> list[list[int]]:
    """The rule, written down a second way on a list of frame numbers."""
    if len(frames) < block:
        return [frames + [-1] * (block - len(frames))]
    rest = len(frames) % block
    if rest >= shortest:
        whole = frames[: len(frames) - rest]
        return [whole[i : i + block] for i in range(0, len(whole), block)] + [frames[-block:]]
    kept = frames[rest // 2 : len(frames) - (rest - rest // 2)]
    return [kept[i : i + block] for i in range(0, len(kept), block)]


@given(st.integers(1, 700))
def test_blocks_are_cut_by_the_papers_rule(frames: int) -> None:
    spectrogram = torch.arange(frames, dtype=torch.float32).repeat(2, 1)
    blocks = LogMel(bands=2).cut(spectrogram)
    expected = cut_as_in_the_paper(list(range(frames)))
    assert blocks.shape == (len(expected), 2, 128)
    for block, numbers in zip(blocks, expected, strict=True):
        shown = [0 if n == -1 else n for n in numbers]  # padding is the smallest value there is, here 0
        assert block[1].tolist() == shown


def test_blocks_are_standardised_by_the_detectors_statistics() -> None:
    wave = noise(5.0, 16_000)
    plain, scaled = LogMel(16_000), LogMel(16_000, mean=-30.0, std=15.0)
    torch.testing.assert_close(scaled.blocks(wave), (plain.blocks(wave) + 30) / 15)


def test_a_sound_shorter_than_half_a_window_is_refused() -> None:
    with pytest.raises(InputError, match="expected more than 512"):
        LogMel(16_000).decibels(np.zeros(400, np.float32))
