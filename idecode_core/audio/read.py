"""Sounds in: files, bytes, file objects or arrays -> mono float32 samples, or one clear sentence why not.

What a sound file declares of its own length, to be held against what is there: decoders read a cut file without a word.
"""

import io
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import soundfile
from numpy.typing import NDArray

from idecode_core.draws import Prepared
from idecode_core.errors import InputError
from idecode_core.files.names import SOUND_BYTES as MAX_BYTES
from idecode_core.files.names import SOUND_SECONDS as MAX_SECONDS
from idecode_core.files.read import read_at_most, reason, regular_size

STREAMED = (0, 0xFFFFFFFF, 0x7FFFFFFF)
"""What programs write into a header when they do not know the length yet."""


def missing_share(data: bytes) -> float:
    """The share of the sound that the header of a WAV, AIFF or AU file declares and that is not there; 0 if all is.

    >>> wav = b"RIFF" + struct.pack("<I", 36 + 80) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
    >>> missing_share(wav + b"data" + struct.pack("<I", 80) + bytes(60))
    0.25
    """
    declared, there = declared_and_there(data)
    if declared in STREAMED or there >= declared:
        return 0.0
    return 1 - there / declared


def declared_and_there(data: bytes) -> tuple[int, int]:
    """Bytes of sound that the header declares, and bytes that follow it; (0, 0) where it declares none."""
    kind, form = data[:4], data[8:12]
    if kind in (b"RIFF", b"RIFX") and form == b"WAVE":
        return in_chunk(data, b"data", "<I" if kind == b"RIFF" else ">I")
    if kind == b"FORM" and form in (b"AIFF", b"AIFC"):
        return in_chunk(data, b"SSND", ">I")
    if kind == b".snd" and len(data) >= 12:
        begin, size = struct.unpack(">II", data[4:12])
        return size, max(len(data) - begin, 0)
    return 0, 0


def in_chunk(data: bytes, wanted: bytes, number: str) -> tuple[int, int]:
    """Declared and present bytes of one chunk of a RIFF or IFF file; of a chunk that was cut away altogether, the
    declared size of the whole file stands in."""
    place = 12
    while place + 8 <= len(data):
        (size,) = struct.unpack(number, data[place + 4 : place + 8])
        if data[place : place + 4] == wanted:
            return size, len(data) - place - 8
        place += 8 + size + size % 2  # chunks begin at even places
    (whole,) = struct.unpack(number, data[4:8])
    return whole, len(data) - 8


MIN_SECONDS = 0.1
LOUDEST = 8.0
"""Floats are full scale at 1; decoders overshoot a little, integers that were cast to float by far more."""
TOLERATED = 0.001  # of the declared length: some encoders round up to a whole block
LOWEST_RATE, HIGHEST_RATE = 1_000, 768_000
MOST_CHANNELS = 16
MOST_VALUES = MAX_SECONDS * 192_000 * 8
"""Samples of all channels together: known before a file is unpacked, and packed silence grows by thousands."""
FORMATS = ("WAV", "WAVEX", "FLAC", "OGG", "MP3", "AIFF", "AU")
"""Only these, though the library knows more: of each of them it is known when a file was cut off."""
EXTENSIONS = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".oga", ".aiff", ".aif", ".au")

Samples = NDArray[np.float32]  # (time,)


@dataclass(frozen=True, eq=False)
class Sound:
    """Mono samples, full scale at +-1, and their rate in Hz."""

    samples: Samples
    sample_rate: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.sample_rate

    def at(self, sample_rate: int) -> "Sound":
        """The same sound at another rate; untouched if the rate is the same already."""
        if sample_rate == self.sample_rate:
            return self
        from librosa import resample  # slow to import

        samples = resample(self.samples, orig_sr=self.sample_rate, target_sr=sample_rate, fix=False)
        return Sound(samples, sample_rate)


def read_sound(
    source: "Path | str | bytes | BinaryIO | NDArray[np.generic] | Sound",
    sample_rate: int | None = None,
    name: str = "",
) -> Sound:
    """Decode anything that holds one sound: WAV, FLAC, OGG, Opus, MP3, or a 1-D array with its `sample_rate`.

    Channels are averaged, integers scaled to +-1. Silence is a sound like any other.
    """
    if isinstance(source, Sound):
        return source
    if isinstance(source, np.ndarray):
        return _from_array(source, sample_rate, name or "The array")
    if isinstance(source, bytes | bytearray):
        data, name = bytes(source), name or "The upload"
    elif hasattr(source, "read"):
        data, name = _from_object(source), name or str(getattr(source, "name", "")) or "The upload"
    else:
        path = Path(source)
        name = name or path.name
        try:
            _check_bytes(regular_size(path), name)
            data = read_at_most(path, MAX_BYTES)
        except (OSError, ValueError) as error:  # ValueError: a path with a null character
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{name}: could not be opened ({reason(error)}); expected a sound file."
            ) from error
    _check_bytes(len(data), name)
    if not data:
        raise InputError(f"{name}: is empty; expected a sound file. Export or copy it again.")
    return _decode(data, name)


def decode(samples: Any, sample_rate: int | None = None) -> Iterator[Any]:
    """Every accepted form of sounds, one decoded sound after the other; `sample_rate` is that of bare arrays.

    Prepared samples pass through.
    """
    one = isinstance(samples, str | Path | bytes | Sound | Prepared) or hasattr(samples, "read")
    if one or (isinstance(samples, np.ndarray) and samples.ndim < 2):
        samples = [samples]
    if not isinstance(samples, Iterable):
        raise InputError(
            f"Expected sounds: a list of paths, file objects or 1-D arrays with their sample_rate; got "
            f"{type(samples).__name__}."
        )
    for sample in samples:
        if isinstance(sample, Prepared):
            yield sample
        elif isinstance(sample, list | tuple):
            yield from decode(sample, sample_rate)
        else:
            yield read_sound(sample, sample_rate)


def _from_object(source: Any) -> bytes:
    if hasattr(source, "seek"):
        source.seek(0)
    data = source.read(MAX_BYTES + 1)
    if not isinstance(data, bytes):
        raise InputError(
            f"The file object gives {type(data).__name__}; expected bytes. Open the sound file in binary mode ('rb')."
        )
    return data


def _check_bytes(size: int, name: str) -> None:
    if size > MAX_BYTES:
        raise InputError(
            f"{name}: has {'over ' if size == MAX_BYTES + 1 else ''}{size / 2**20:.0f} MB; expected at most "
            f"{MAX_BYTES // 2**20} MB and {MAX_SECONDS} seconds. Cut out the part of interest."
        )


class Bytes(io.BytesIO):
    """Bytes as a file. A damaged header can ask for a place before the first byte: an error that the library would print."""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: len(self.getbuffer())}.get(whence, 0)
        return super().seek(min(max(begin + offset, 0), len(self.getbuffer())))


def _decode(data: bytes, name: str) -> Sound:
    try:
        with soundfile.SoundFile(Bytes(data)) as file:
            rate = int(file.samplerate)
            if file.format not in FORMATS:
                raise InputError(
                    f"{name}: is a sound of the format {file.format}; expected WAV, FLAC, OGG, Opus, MP3, AIFF or AU. Save "
                    "it as WAV."
                )
            _check_rate(rate, name)
            if file.frames > MAX_SECONDS * rate:
                raise InputError(_too_long(name, file.frames / rate))
            if file.channels > MOST_CHANNELS or file.frames * file.channels > MOST_VALUES:
                raise InputError(
                    f"{name}: has {file.channels} channel{'s' * (file.channels > 1)} of {file.frames / rate:.1f} seconds at "
                    f"{rate} Hz; expected at most {MOST_CHANNELS} channels, and at most {MOST_VALUES // 10**6} million samples "
                    "in all of them together. Mix it down to one channel, or save it at a lower rate."
                )
            # some formats do not know their length beforehand, so one second more than allowed is asked for
            most = min((MAX_SECONDS + 1) * rate, MOST_VALUES // file.channels)
            samples = file.read(most, dtype="float32", always_2d=True)  # (time, channels)
            declared = min(int(file.frames), most)
    except (soundfile.LibsndfileError, RuntimeError):
        raise InputError(
            f"{name}: is not a sound that can be read; expected WAV, FLAC, OGG, Opus or MP3. Check the file, or save it "
            f"as WAV."
        ) from None
    cut_off = max(missing_share(data), 1 - len(samples) / declared if declared > 0 else 0.0)
    if cut_off > TOLERATED:
        raise InputError(
            f"{name}: is cut off: {cut_off:.0%} of the sound that its header declares is missing; expected a complete file. "
            f"Copy or export it again."
        )
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused in words
        mono = samples[:, 0] if samples.shape[1] == 1 else samples.mean(axis=1, dtype=np.float32)
    del samples
    return _checked(mono, rate, name)


def _from_array(array: NDArray[np.generic], sample_rate: int | None, name: str) -> Sound:
    if sample_rate is None:
        raise InputError(
            f"{name}: comes without a rate; expected sample_rate= in Hz, for instance sample_rate=16000."
        )
    _check_rate(int(sample_rate), name)
    if array.ndim != 1:
        raise InputError(
            f"{name}: has shape {array.shape}; expected one channel, shape (time,). Average the channels, or give a list "
            f"of 1-D arrays for several sounds."
        )
    if np.issubdtype(array.dtype, np.floating):
        samples = array.astype(np.float32)
    elif array.dtype == np.uint8:  # 8-bit WAV counts from 0 to 255
        samples = (array.astype(np.float32) - np.float32(128)) / np.float32(128)
    elif np.issubdtype(array.dtype, np.signedinteger):
        samples = array.astype(np.float32) / np.float32(2.0 ** (8 * array.itemsize - 1))
    else:
        raise InputError(
            f"{name}: has type {array.dtype}; expected floats in [-1, 1], int16, int32 or uint8."
        )
    return _checked(samples, int(sample_rate), name)


def _check_rate(rate: int, name: str) -> None:
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise InputError(
            f"{name}: has a sample rate of {rate} Hz; expected {LOWEST_RATE} to {HIGHEST_RATE}. Give the true rate."
        )


def _too_long(name: str, seconds: float) -> str:
    return f"{name}: is {seconds / 60:.1f} minutes long; expected at most {MAX_SECONDS} seconds. Cut out the part of interest."


def _checked(samples: Samples, rate: int, name: str) -> Sound:
    seconds = len(samples) / rate
    if len(samples) == 0:
        raise InputError(
            f"{name}: holds no samples; expected at least {MIN_SECONDS} seconds of sound. Record it again."
        )
    if seconds < MIN_SECONDS:
        raise InputError(
            f"{name}: has {len(samples)} sample{'s' * (len(samples) > 1)} ({seconds:.2g} s); expected at least "
            f"{MIN_SECONDS} seconds of sound. Use a longer recording."
        )
    if seconds > MAX_SECONDS:
        raise InputError(_too_long(name, seconds))
    if not np.isfinite(samples).all():
        count = int((~np.isfinite(samples)).sum())
        raise InputError(
            f"{name}: has {count} sample{'s' * (count > 1)} that {'is' if count == 1 else 'are'} not a number or infinite; "
            f"expected finite values. Repair or export it again."
        )
    loudest = float(max(samples.max(), -samples.min()))
    if loudest > LOUDEST:
        raise InputError(
            f"{name}: has values up to {loudest:g}; expected floats with full scale at 1. Divide by the largest possible "
            f"value (32768 for 16-bit sound)."
        )
    return Sound(samples, rate)
