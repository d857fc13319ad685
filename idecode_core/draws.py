"""Each point has its own draws: a function of (seed, content) and of nothing else (design invariant 1).

A point's key is a keyed hash of its decoded pixels or samples; a counter-based generator (Philox) turns
the key into uniform numbers. Draw i is the i-th row of the stream, so the draws for n' < n are the first
n' of those for n, whatever the batch, the file, the process or the device.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]  # (batch, 2): a 128-bit Philox key per point
Uniforms = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A sample that was decoded and hashed once: the key of its draws under a seed, and what the model takes in.

    The decoded input itself is let go, so memory is bounded by the batch at the model's size.
    """

    key: NDArray[np.uint64]  # (2,)
    seed: int
    x: Any
    """Pixels at the model's size, the blocks of a sound, or for a merged scorer its members' prepared samples."""


def content_key(x: NDArray[np.generic], seed: int) -> NDArray[np.uint64]:
    """The 128-bit key of one decoded input under a seed."""
    digest = blake2b(digest_size=16, key=seed.to_bytes(16, "little", signed=True))
    digest.update(f"{x.dtype.str}{x.shape}".encode())  # a 2x3 image and a 3x2 image may hold the same bytes
    digest.update(np.ascontiguousarray(x).data)
    return np.frombuffer(digest.digest(), dtype="<u8").astype(np.uint64)


def content_hash(x: NDArray[np.generic], sample_rate: int | None = None) -> str:
    """A name for one decoded input, whatever file it came in; a sound's rate in Hz is part of what it is."""
    digest = content_key(x, seed=0).tobytes()
    if sample_rate is not None:
        digest = blake2b(f"{sample_rate} Hz".encode(), digest_size=16, key=digest).digest()
    return digest.hex()


def uniforms(keys: Keys, n: int, size: int) -> Uniforms:
    """Uniform numbers in [0, 1), `size` for each of n draws of each point: (batch, n, size)."""
    rows = [np.random.Generator(np.random.Philox(key=key)).random((n, size)) for key in keys]
    return np.stack(rows) if rows else np.empty((0, n, size))


def integers(u: Uniforms, low: int, high: int) -> NDArray[np.int64]:
    """Uniform integers in {low, ..., high}, both ends included, from uniform numbers."""
    return np.floor(u * (high - low + 1)).astype(np.int64) + low
