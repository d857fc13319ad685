"""What a sound file declares of its own length, to be held against what is there: decoders read a cut file without a word."""

import struct

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
