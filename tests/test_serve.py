"""`idecode serve`: the library's answers over HTTP, in batches, with limits, clear errors and metrics."""

import asyncio
import json
import re
import shlex
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
import pytest
import uvicorn
from dockerfile import stages
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families
from small import random_images, small_scorer

from idecode_core import __version__
from idecode_core.cli.app import main
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.files.limits import IMAGE_BYTES
from idecode_core.guarantees.streams import log_simple_jumper, online_p_values
from idecode_core.serve.batching import Batcher, Overloaded
from idecode_core.serve.service import Settings, make_service
from idecode_core.serve.watch import WatchedStream

IMAGES = random_images(40, seed=7)


def png(pixels: np.ndarray) -> bytes:
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, "png")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector.calibrate("tiny", small_scorer(), random_images(50), n_max=4)


class Running:
    """A service on a port of this machine."""

    def __init__(self, detector: Detector) -> None:
        self.app = make_service(detector, Settings(n=3, epsilon=0.1))
        self.server = uvicorn.Server(uvicorn.Config(self.app, port=0, log_level="error"))
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            self.thread.join(0.02)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()

    def post(self, data: bytes, path: str = "/detect", **headers: str) -> tuple[int, dict]:
        request = urllib.request.Request(
            self.address + path, data, {"Content-Type": "application/octet-stream", **headers}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.address + path, timeout=30) as answer:
            return answer.read()

    def metrics(self) -> dict[str, float]:
        families = text_string_to_metric_families(self.get("/metrics").decode())
        return {
            sample.name + "".join(f",{value}" for value in sample.labels.values()): sample.value
            for family in families
            for sample in family.samples
        }


@pytest.fixture
def service(detector) -> Iterator[Running]:
    running = Running(detector)
    yield running
    running.stop()


def form(field: str, data: bytes) -> tuple[bytes, str]:
    body = (
        f'--xyz\r\nContent-Disposition: form-data; name="{field}"; filename="a.png"\r\n\r\n'.encode() + data
    )
    return body + b"\r\n--xyz--\r\n", "multipart/form-data; boundary=xyz"


def test_a_file_gets_the_answer_of_the_library(service, detector):
    expected = detector.detect(IMAGES[:1], n=3, epsilon=0.1)[0]
    status, answer = service.post(png(IMAGES[0]))
    assert status == 200
    assert answer == {
        "p_value": expected.p_value,
        "is_ood": expected.is_ood,
        "score": pytest.approx(expected.score),
        "k": 50,
        "n": 3,
        "epsilon": 0.1,
        "delta": None,
        "detector": "tiny",
        "version": __version__,
    }
    body, kind = form("file", png(IMAGES[0]))
    assert service.post(body, **{"Content-Type": kind}) == (200, answer)
    assert json.loads(service.get("/health")) == {
        "status": "ok", "detector": "tiny", "k": 50, "n_max": 4, "version": __version__,
    }  # fmt: skip


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


@pytest.mark.parametrize(
    ("data", "kind", "status", "sentence"),
    [
        (b"", "image/png", 422, "is empty"),
        (b"no picture", "image/png", 422, "is not an image"),
        (png(IMAGES[0])[:200], "image/png", 422, "damaged or cut off"),
        (form("picture", b"x")[0], form("picture", b"x")[1], 400, "no field called file"),
        (b"not a form", "multipart/form-data; boundary=xyz", 400, "form"),
        (b"not a form", "multipart/form-data", 400, "form"),
    ],
)
def test_bad_requests_get_one_sentence(service, data, kind, status, sentence):
    found, answer = service.post(data, **{"Content-Type": kind})
    assert found == status
    assert sentence in answer["error"]
    assert service.metrics()[f"idecode_requests_total,{status}"] == 1
    assert service.post(png(IMAGES[0]))[0] == 200  # it goes on


def test_a_file_that_is_declared_too_large_is_refused_before_it_is_sent(service):
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.sendall(
            f"POST /detect HTTP/1.1\r\nHost: x\r\nContent-Length: {IMAGE_BYTES + 2**20}\r\n\r\n".encode()
        )
        answer = b""
        while b"}" not in answer:
            answer += connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"expected at most 20 MB" in answer


def test_a_body_that_does_not_declare_its_size_is_cut_off(service):
    def endless() -> Iterator[bytes]:
        for _ in range(30):
            yield bytes(2**20)

    request = urllib.request.Request(f"{service.address}/detect", endless(), {"Content-Type": "image/png"})
    with pytest.raises((urllib.error.HTTPError, ConnectionError, urllib.error.URLError)) as refused:
        urllib.request.urlopen(request, timeout=30)
    assert getattr(refused.value, "code", 413) == 413
    assert service.metrics()["idecode_requests_total,413"] == 1


def test_prometheus_sees_requests_rates_p_values_and_the_martingale(service, detector):
    expected = detector.detect(IMAGES, n=3, epsilon=0.1)
    for pixels in IMAGES:
        service.post(png(pixels))
    found = service.metrics()
    assert found["idecode_requests_total,200"] == found["idecode_request_seconds_count"] == len(IMAGES)
    assert found["idecode_flagged_total"] == expected.is_ood.sum()
    assert found["idecode_flag_rate"] == pytest.approx(expected.is_ood.mean())
    for bound in ("0.1", "0.5", "1.0"):
        assert found[f"idecode_p_value_bucket,{bound}"] == (expected.p_values <= float(bound)).sum()
    calibration = detector.calibration.scores(3)
    p = online_p_values(calibration, expected.scores, generator=np.random.default_rng(0))
    assert found["idecode_log_martingale"] == pytest.approx(log_simple_jumper(p)[-1], abs=0.01)
    assert found["idecode_stream_points"] == len(IMAGES)


def test_the_watched_stream_goes_point_by_point_where_the_library_takes_a_whole_stream():
    generator = np.random.default_rng(3)
    calibration, stream = generator.integers(0, 30, 40) / 3, generator.integers(0, 60, 80) / 3  # with ties
    watched = WatchedStream(calibration, np.random.default_rng(5), most=80)
    path = [watched.add(score) for score in stream]
    p = online_p_values(calibration, stream, generator=np.random.default_rng(5))
    np.testing.assert_allclose(path, log_simple_jumper(p))
    watched.add(0.0)
    assert (watched.points, len(watched.seen)) == (1, 41)  # it began again: memory is bounded


def test_when_too_many_wait_the_next_is_sent_away(detector):
    async def crowd() -> None:
        batcher = Batcher(detector.scorer, n=2, seed=0, most_waiting=1)
        point = detector.scorer.prepare(IMAGES[0], 0)
        first = asyncio.create_task(batcher.score(point))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await batcher.score(point)
        running = asyncio.create_task(batcher.run())
        assert (await first).shape == (2,)
        running.cancel()

    asyncio.run(crowd())


def test_a_failing_batch_is_told_to_those_who_wait_and_the_next_is_scored(detector):
    async def fail_once() -> None:
        batcher = Batcher(detector.scorer, n=2, seed=0)
        running = asyncio.create_task(batcher.run())
        with pytest.raises(SettingError, match="prepared for seed 1"):
            await batcher.score(detector.scorer.prepare(IMAGES[0], 1))
        assert (await batcher.score(detector.scorer.prepare(IMAGES[0], 0))).shape == (2,)
        running.cancel()

    asyncio.run(fail_once())


def test_with_a_delta_the_service_flags_what_the_library_flags(detector):
    expected = detector.detect(IMAGES, n=3, epsilon=0.3, delta=0.2)
    assert expected.is_ood.sum() < detector.detect(IMAGES, n=3, epsilon=0.3).is_ood.sum()
    service = make_service(detector, Settings(n=3, epsilon=0.3, delta=0.2)).state.service

    async def ask() -> list[bool]:
        running = asyncio.create_task(service.batcher.run())
        answers = [await service.answer(png(pixels)) for pixels in IMAGES]
        running.cancel()
        return [answer.is_ood for answer in answers]

    assert asyncio.run(ask()) == expected.is_ood.tolist()


def test_a_port_that_is_taken_is_told_before_anything_is_loaded(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SystemExit) as ended:
        main(["serve", "--port", str(taken.getsockname()[1]), "--detector", "nowhere"])
    assert ended.value.code == 2
    assert re.search(r"at 127.0.0.1, port \d+ \(Address already in use\)", capsys.readouterr().err)


def test_more_draws_than_were_calibrated_are_refused_at_the_start(detector):
    with pytest.raises(SettingError, match="between 1 and 4"):
        make_service(detector, Settings(n=5))


def test_the_containers_health_check_tells_a_running_service_from_none(service):
    check = stages()["service"].all("HEALTHCHECK")[0].partition("CMD ")[2]
    command = shlex.split(check.replace("8000", str(service.port)))
    command[0] = sys.executable
    assert subprocess.run(command, check=False).returncode == 0
    service.stop()
    assert subprocess.run(command, check=False, capture_output=True).returncode != 0
