"""Reading sounds: every form gives the same samples, and what cannot be read is one clear sentence."""

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile

from idecode_core.audio.read import MAX_SECONDS, Sound, decode, read_sound
from idecode_core.errors import InputError

RATE = 16_000


@pytest.fixture
def wave() -> np.ndarray:
    t = np.arange(RATE) / RATE
    return (0.5 * np.sin(2 * np.pi * 440 * t)).astype(np.float32)


def as_file(samples: np.ndarray, rate: int = RATE, kind: str = "WAV", subtype: str | None = None) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


def test_path_bytes_and_file_object_give_the_samples_that_were_written(
    tmp_path: Path, wave: np.ndarray
) -> None:
    sixteen = np.round(wave * 32768).astype(np.int16)
    data = as_file(sixteen)
    path = tmp_path / "a.wav"
    path.write_bytes(data)
    for source in (path, str(path), data, io.BytesIO(data)):
        sound = read_sound(source)
        assert sound.sample_rate == RATE
        np.testing.assert_array_equal(sound.samples, sixteen / np.float32(32768))


def test_a_file_object_that_was_read_before_is_read_from_its_start(wave: np.ndarray) -> None:
    file = io.BytesIO(as_file(wave))
    file.read()
    assert len(read_sound(file).samples) == RATE


@pytest.mark.parametrize(
    ("kind", "subtype"),
    [
        ("WAV", "PCM_U8"),
        ("WAV", "PCM_24"),
        ("WAV", "FLOAT"),
        ("FLAC", None),
        ("OGG", None),
        ("OGG", "OPUS"),
        ("MP3", None),
    ],
)
def test_formats_keep_the_tone(wave: np.ndarray, kind: str, subtype: str | None) -> None:
    sound = read_sound(as_file(wave, 48_000 if subtype == "OPUS" else RATE, kind, subtype))
    middle = sound.samples[len(sound.samples) // 4 : 3 * len(sound.samples) // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
    frequency = np.argmax(spectrum) * sound.sample_rate / len(middle)
    assert frequency == pytest.approx(440 * sound.sample_rate / RATE, rel=0.02)


def test_integer_arrays_mean_the_same_as_floats(wave: np.ndarray) -> None:
    sixteen = np.round(wave * 32768).astype(np.int16)
    np.testing.assert_array_equal(read_sound(sixteen, RATE).samples, read_sound(as_file(sixteen)).samples)
    eight = np.round(wave * 127 + 128).astype(np.uint8)
    np.testing.assert_allclose(read_sound(eight, RATE).samples, wave, atol=0.01)


def test_eight_channels_are_averaged(wave: np.ndarray) -> None:
    channels = np.stack([wave * i / 8 for i in range(8)], axis=1)
    sound = read_sound(as_file(channels, subtype="FLOAT"))
    np.testing.assert_allclose(sound.samples, wave * np.mean(np.arange(8) / 8), atol=1e-6)


def test_192_khz_comes_down_to_16_khz_with_the_tone_in_place() -> None:
    t = np.arange(192_000) / 192_000
    high = (0.5 * np.sin(2 * np.pi * 1000 * t) + 0.3 * np.sin(2 * np.pi * 40_000 * t)).astype(np.float32)
    sound = read_sound(high, 192_000).at(RATE)
    assert len(sound.samples) == RATE
    expected = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE)  # 40 kHz is above half the rate: gone
    np.testing.assert_allclose(sound.samples[1000:-1000], expected[1000:-1000], atol=0.005)


def test_the_same_rate_leaves_every_sample_as_it_is(wave: np.ndarray) -> None:
    sound = Sound(wave, RATE)
    assert sound.at(RATE).samples is wave


def test_silence_and_clipping_are_sounds_like_any_other() -> None:
    assert not read_sound(np.zeros(RATE, np.float32), RATE).samples.any()
    clipped = np.clip(3 * np.sin(np.arange(RATE) / 5), -1, 1).astype(np.float32)
    np.testing.assert_array_equal(read_sound(clipped, RATE).samples, clipped)


@pytest.mark.parametrize(
    ("source", "rate", "words"),
    [
        (np.zeros(0, np.float32), RATE, "no samples"),
        (np.zeros(1, np.float32), RATE, "has 1 sample"),
        (np.zeros(800, np.float32), RATE, "0.05 s"),
        (np.full(RATE, np.nan, np.float32), RATE, "not a number"),
        (np.full(RATE, np.inf), RATE, "infinite"),
        (np.full(RATE, 20_000.0), RATE, "full scale at 1"),
        (np.zeros((RATE, 2), np.float32), RATE, "one channel"),
        (np.zeros(RATE, np.complex64), RATE, "complex64"),
        (np.zeros(RATE, np.float32), None, "sample_rate="),
        (np.zeros(RATE, np.float32), 0, "sample rate of 0"),
        (np.zeros((MAX_SECONDS + 1) * RATE, np.float32), RATE, "at most 60 seconds"),
        (b"", None, "is empty"),
        (b"Dear diary, this is a renamed text file.", None, "is not a sound"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", None, "is not a sound"),
        (io.StringIO("text"), None, "binary mode"),
    ],
)
def test_what_cannot_be_read_is_one_clear_sentence(source: object, rate: int | None, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_sound(source, rate)  # type: ignore[arg-type]


def test_an_hour_of_sound_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    path = tmp_path / "hour.flac"
    soundfile.write(path, np.zeros(3600 * 8000, np.int16), 8000)
    with pytest.raises(InputError, match=r"hour\.flac: is 60\.0 minutes long; expected at most 60 seconds"):
        read_sound(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.wav: could not be opened"):
        read_sound(tmp_path / "nowhere.wav")
    with pytest.raises(InputError, match="could not be opened"):
        read_sound(tmp_path)


def test_a_cut_off_file_is_read_as_far_as_it_goes_or_refused(wave: np.ndarray) -> None:
    for kind in ("WAV", "FLAC", "OGG"):
        data = as_file(wave, kind=kind)
        try:
            sound = read_sound(data[: len(data) // 2])
        except InputError:
            continue
        assert 0 < len(sound.samples) <= RATE


def test_many_sounds_come_in_their_order_whatever_holds_them(tmp_path: Path, wave: np.ndarray) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(as_file(wave))
    batch = [path, wave, [Sound(wave[:4000], RATE)], io.BytesIO(as_file(wave[:3000]))]
    lengths = [len(sound.samples) for sound in decode(batch, RATE)]
    assert lengths == [RATE, RATE, 4000, 3000]
    assert len(list(decode(np.stack([wave, wave]), RATE))) == 2
    assert len(list(decode(wave, RATE))) == 1
    with pytest.raises(InputError, match="got int"):
        list(decode(3))
