"""Requests that come at the same time go through the network together.

Nobody waits for company: whatever has arrived while the last batch was being scored is the next batch. A lone request is
scored at once; under load, batches grow by themselves, up to as many points as are scored in `SECONDS`.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idecode_core.draws import Prepared
from idecode_core.scorer import Scorer

Vector = NDArray[np.float64]  # (n,)
SECONDS = 0.5
"""How long one batch may take: who comes next waits that long at the most before its own is begun."""


class Overloaded(Exception):
    """More requests wait than are allowed to."""


@dataclass(eq=False)
class Waiting:
    sample: Prepared
    n: int
    answer: "asyncio.Future[Vector]"


class Batcher:
    """Scores prepared samples in batches, in one thread beside the event loop; those of one batch have n and seed in common."""

    def __init__(self, scorer: Scorer, *, most: int = 64, most_waiting: int = 1_024) -> None:
        self.scorer, self.most, self.most_waiting = scorer, most, most_waiting
        self.waiting: deque[Waiting] = deque()
        self.arrived = asyncio.Event()
        self.seconds_per_draw = 0.0
        self.batches = self.points = 0

    async def score(self, sample: Prepared, n: int) -> Vector:
        """V(x) of one sample: (n,)."""
        if len(self.waiting) >= self.most_waiting:
            raise Overloaded
        request = Waiting(sample, n, asyncio.get_running_loop().create_future())
        self.waiting.append(request)
        self.arrived.set()
        return await request.answer

    def next_batch(self) -> list[Waiting]:
        """Those who came first, with n and seed like the first of them; whose client has left is left out."""
        alive = [request for request in self.waiting if not request.answer.done()]
        if not alive:
            self.waiting.clear()
            return []
        n, seed = alive[0].n, alive[0].sample.seed
        room = self.most
        if self.seconds_per_draw:
            room = max(1, min(room, int(SECONDS / (self.seconds_per_draw * n))))
        batch = [request for request in alive if (request.n, request.sample.seed) == (n, seed)][:room]
        chosen = set(map(id, batch))
        self.waiting = deque(request for request in alive if id(request) not in chosen)
        return batch

    async def run(self) -> None:
        """Score batch after batch until cancelled."""
        while True:
            await self.arrived.wait()
            batch = self.next_batch()
            if not batch:
                self.arrived.clear()
                continue
            self.batches, self.points = self.batches + 1, self.points + len(batch)
            n, start = batch[0].n, time.perf_counter()
            try:
                vectors = await asyncio.to_thread(self._score, [request.sample for request in batch], n)
            except Exception as error:  # whatever it is, those who wait must hear of it
                for request in batch:
                    if not request.answer.done():
                        request.answer.set_exception(error)
                continue
            self.seconds_per_draw = (time.perf_counter() - start) / (len(batch) * n)
            for request, vector in zip(batch, vectors, strict=True):
                if not request.answer.done():  # its client may have left
                    request.answer.set_result(vector)

    def _score(self, samples: Sequence[Prepared], n: int) -> Vector:
        return self.scorer.score(samples, n=n, seed=samples[0].seed).score_vectors  # (batch, n)
