"""Requests that come at the same time go through the network together.

Nobody waits for company: whatever has arrived while the last batch was being scored is the next batch. A lone request is
scored at once; under load, batches grow by themselves.
"""

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from idecode_core.draws import Prepared
from idecode_core.scorer import Scorer

Vector = NDArray[np.float64]  # (n,)
Waiting = tuple[Prepared, "asyncio.Future[Vector]"]


class Overloaded(Exception):
    """More requests wait than are allowed to."""


class Batcher:
    """Scores prepared samples in batches, in one thread beside the event loop."""

    def __init__(
        self, scorer: Scorer, *, n: int, seed: int, most: int = 64, most_waiting: int = 1_024
    ) -> None:
        self.scorer, self.n, self.seed, self.most = scorer, n, seed, most
        self.waiting: asyncio.Queue[Waiting] = asyncio.Queue(most_waiting)
        self.batches = self.points = 0

    async def score(self, sample: Prepared) -> Vector:
        """V(x) of one sample: (n,)."""
        future: asyncio.Future[Vector] = asyncio.get_running_loop().create_future()
        try:
            self.waiting.put_nowait((sample, future))
        except asyncio.QueueFull:
            raise Overloaded from None
        return await future

    async def run(self) -> None:
        """Score batch after batch until cancelled."""
        while True:
            batch = [await self.waiting.get()]
            while len(batch) < self.most and not self.waiting.empty():
                batch.append(self.waiting.get_nowait())
            self.batches, self.points = self.batches + 1, self.points + len(batch)
            try:
                vectors = await asyncio.to_thread(self._score, [sample for sample, _ in batch])
            except Exception as error:  # whatever it is, those who wait must hear of it
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), vector in zip(batch, vectors, strict=True):
                if not future.done():  # its client may have left
                    future.set_result(vector)

    def _score(self, samples: Sequence[Prepared]) -> Vector:
        return self.scorer.score(samples, n=self.n, seed=self.seed).score_vectors  # (batch, n)
