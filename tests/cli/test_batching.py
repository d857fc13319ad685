"""Requests are scored together, and too many are sent away."""

# ruff: noqa: F811  `detector` and `service` are fixtures of another file

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from small import in_a_loop_of_its_own
from test_serve import IMAGES, detector, png, service  # noqa: F401  fixtures

from idecode_core.errors import SettingError
from idecode_core.serve.batching import SECONDS, Batcher, Overloaded


def test_concurrent_requests_are_scored_together_and_each_gets_its_own_answer(service, detector):
    expected = detector.detect(IMAGES, n=3, epsilon=0.1)
    files = [png(pixels) for pixels in IMAGES]
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(service.post, files))
    assert [status for status, _ in answers] == [200] * len(IMAGES)
    assert [answer["p_value"] for _, answer in answers] == expected.p_values.tolist()
    batcher = service.app.state.service.batcher
    assert batcher.points == len(IMAGES)
    assert batcher.batches < len(IMAGES)


def test_when_too_many_wait_the_next_is_sent_away(detector):
    async def crowd() -> None:
        batcher = Batcher(detector.scorer, most_waiting=1)
        point = detector.scorer.prepare(IMAGES[0], 0)
        first = asyncio.create_task(batcher.score(point, 2))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await batcher.score(point, 2)
        running = asyncio.create_task(batcher.run())
        assert (await first).shape == (2,)
        running.cancel()

    in_a_loop_of_its_own(crowd())


def test_a_failing_batch_is_told_to_those_who_wait_and_the_next_is_scored(detector):
    async def fail_once() -> None:
        batcher = Batcher(detector.scorer)
        running = asyncio.create_task(batcher.run())
        with pytest.raises(SettingError, match="n must be at least 1"):
            await batcher.score(detector.scorer.prepare(IMAGES[0], 1), 0)
        assert (await batcher.score(detector.scorer.prepare(IMAGES[0], 0), 2)).shape == (2,)
        running.cancel()

    in_a_loop_of_its_own(fail_once())


def test_a_batch_has_as_many_points_as_are_scored_in_its_time(detector):
    async def crowd() -> list[int]:
        batcher = Batcher(detector.scorer)
        batcher.seconds_per_draw = SECONDS / 8  # so two draws each leave room for four points
        point = detector.scorer.prepare(IMAGES[0], 0)
        asked = [asyncio.create_task(batcher.score(point, n)) for n in (2, 2, 3, 2, 2, 2)]
        await asyncio.sleep(0)
        asked[1].cancel()
        await asyncio.sleep(0)
        return [len(batcher.next_batch()), len(batcher.next_batch()), len(batcher.next_batch())]

    assert in_a_loop_of_its_own(crowd()) == [4, 1, 0]
