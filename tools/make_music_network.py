"""Write idecode_core/embedded/music-network.safetensors from the package musicnn 0.1.0 (ISC licence).

    pip download --no-deps musicnn==0.1.0 -d wheels
    python -m tools.make_music_network wheels/musicnn-0.1.0-py3-none-any.whl

The wheel holds the weights as a TensorFlow checkpoint: an index, which is a table of LevelDB's form (blocks of keys that share
beginnings), and the values end to end. It is read without TensorFlow. Convolutions are rounded to half precision.
"""

import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from idecode_core.models.music_network import POOLS, WEIGHTS, MusicNetwork

PLACE = "musicnn/MTT_vgg"
FOOTER = 48
NORM = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}


def number(data: bytes, place: int) -> tuple[int, int]:
    """A varint and the place behind it."""
    value = shift = 0
    while True:
        byte = data[place]
        place, value, shift = place + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, place


def entries(index: bytes, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of one block of the table."""
    block, key, place = index[start : start + size], b"", 0
    (restarts,) = struct.unpack("<I", block[-4:])
    while place < len(block) - 4 - 4 * restarts:
        shared, place = number(block, place)
        own, place = number(block, place)
        length, place = number(block, place)
        key = key[:shared] + block[place : place + own]
        yield key, block[place + own : place + own + length]
        place += own + length


def fields(message: bytes) -> dict[int, int | bytes]:
    """The last value of each field of a protocol buffer message."""
    read: dict[int, int | bytes] = {}
    place = 0
    while place < len(message):
        tag, place = number(message, place)
        if tag & 7 == 0:
            read[tag >> 3], place = number(message, place)
        else:  # bytes of a length, or four
            length, place = number(message, place) if tag & 7 == 2 else (4, place)
            read[tag >> 3], place = message[place : place + length], place + length
    return read


def arrays(index: bytes, values: bytes) -> Iterator[tuple[str, np.ndarray]]:
    """Name and flat values of all float tensors."""
    place = 0
    for _ in range(2):  # where the table of metadata lies
        _, place = number(index[-FOOTER:], place)
    start, place = number(index[-FOOTER:], place)
    size, _ = number(index[-FOOTER:], place)
    for _, handle in entries(index, start, size):
        begin, place = number(handle, 0)
        length, _ = number(handle, place)
        for key, value in entries(index, begin, length):
            entry = fields(value)
            if key and entry.get(1) == 1:  # float32
                offset, count = int(entry.get(4, 0)), int(entry[5])
                yield key.decode(), np.frombuffer(values[offset : offset + count], np.float32)


def main(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = (f"{PLACE}/.index", f"{PLACE}/.data-00000-of-00001")
        stored = dict(arrays(*(file.read(name) for name in names)))
    own = MusicNetwork().state_dict()
    weights: dict[str, Tensor] = dict(own)  # counters of batches stay 0

    def take(name: str, theirs: str) -> None:
        shape = own[name].shape
        value = torch.from_numpy(stored[theirs].copy())
        if len(shape) == 4:  # theirs is (frames, bands, inputs, outputs)
            value = value.reshape(*shape[2:], shape[1], shape[0]).permute(3, 2, 0, 1).half()
        weights[name] = value.reshape(shape).contiguous()

    for i in range(len(POOLS) + 1):
        norm = f"norms.{i - 1}" if i else "input_norm"
        for ours, theirs in NORM.items():
            take(f"{norm}.{ours}", f"batch_normalization{f'_{i}' if i else ''}/{theirs}")
        if i < len(POOLS):
            take(f"convolutions.{i}.weight", f"{i + 1}CNN/kernel")
            take(f"convolutions.{i}.bias", f"{i + 1}CNN/bias")
    save_file(weights, WEIGHTS)
    print(f"{WEIGHTS}: {WEIGHTS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
