"""What one sees and hears of a sound: hidden cells, Griffin-Lim, figures, bundled sounds."""

import io

import numpy as np
import pytest
import soundfile
import torch
from small import content_keys

from idecode_core.audio.features import LogMel
from idecode_core.audio.listening import audible, hidden_cells, spectrogram, wav_bytes
from idecode_core.audio.read import Sound, read_sound
from idecode_core.audio.sets import FOLDER, gallery_sounds
from idecode_core.transforms.specaugment import SpecAugment
from tools.synthetic_sounds import MAKERS, in_a_room

RATE = 16_000
FEATURES = LogMel(RATE)
MASKS = SpecAugment()


def tone(hertz: float, seconds: float = 2.0) -> Sound:
    return Sound(
        np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE).astype(np.float32) / 2, RATE
    )


@pytest.mark.parametrize("seconds", [1.0, 5.0, 9.0])
def test_hidden_cells_are_where_the_masked_blocks_are_zero(seconds: float) -> None:
    """The same cells, from the masked blocks themselves: a cell is hidden if every block that holds it has 0 there."""
    frames = 1 + round(seconds * RATE) // FEATURES.hop
    starts = FEATURES.block_starts(frames)
    keys = content_keys(np.array([[7]]), 0)
    drawn = MASKS.sample(keys, 1, len(starts))
    gx = MASKS.apply(torch.ones(1, len(starts), 64, 128), drawn)[0, 0]
    expected = np.zeros((64, max(frames, 128)), bool)
    for column in range(frames):
        cells = [
            block[:, column - start] == 0
            for start, block in zip(starts, gx, strict=True)
            if 0 <= column - start < 128
        ]
        if cells:
            expected[:, column] = torch.stack(cells).all(dim=0).numpy()
    np.testing.assert_array_equal(hidden_cells(FEATURES, MASKS, drawn[0, 0], frames), expected[:, :frames])


def test_griffin_lim_gives_back_the_tone_and_silences_what_is_hidden() -> None:
    seen = spectrogram(tone(1000), FEATURES)
    wave = audible(seen.decibels, FEATURES)
    spectrum = np.abs(np.fft.rfft(wave[4000:-4000]))
    assert np.argmax(spectrum) * RATE / len(wave[4000:-4000]) == pytest.approx(1000, rel=0.03)
    hidden = np.zeros(seen.decibels.shape, bool)
    hidden[:, :30] = True  # about the first second
    masked = audible(seen.decibels, FEATURES, hidden)
    assert np.abs(masked[2000:12_000]).max() < 0.05 * np.abs(masked[20_000:]).max()


def test_listening_twice_gives_the_same_samples_and_touches_no_global_generator() -> None:
    seen = spectrogram(tone(500), FEATURES)
    state = torch.random.get_rng_state()
    np.testing.assert_array_equal(audible(seen.decibels, FEATURES), audible(seen.decibels, FEATURES))
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_player_gets_a_wav_file_that_does_not_clip() -> None:
    samples, rate = soundfile.read(io.BytesIO(wav_bytes(np.array([0.5, -4.0], np.float32), RATE)))
    assert rate == RATE
    np.testing.assert_allclose(samples, [0.5 / 4 * 0.9, -0.9], atol=1e-3)


def test_the_bundled_sounds_can_be_read_and_are_small() -> None:
    found = gallery_sounds()
    assert [sound.name for sound in found if not sound.is_ood] == (
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    )
    assert sum(sound.is_ood for sound in found) >= 10
    for sound in found:
        assert read_sound(sound.path).seconds > 0.1
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2 * 2**20


@pytest.mark.parametrize("kind", MAKERS)
def test_formula_sounds_have_their_length_and_peak_and_follow_their_generator(kind: str) -> None:
    waves = [MAKERS[kind](1.0, RATE, generator=np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert all(len(wave) == RATE and np.abs(wave).max() == pytest.approx(1, abs=1e-5) for wave in waves)
    np.testing.assert_array_equal(waves[0], waves[1])
    assert not np.array_equal(waves[0], waves[2])
    heard = in_a_room(waves[0], generator=np.random.default_rng(0))
    assert 0.05 < np.abs(heard).max() <= 0.9
