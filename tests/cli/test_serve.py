"""`idecode serve`: the library's answers over HTTP, in batches, with limits, clear errors and metrics."""

import asyncio
import json
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from io import BytesIO

import numpy as np
import pytest
import uvicorn
from dockerfile import stages
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families
from small import in_a_loop_of_its_own, random_images, small_scorer

from idecode_core import __version__
from idecode_core.cli.app import main
from idecode_core.conformal.settings import Settings
from idecode_core.conformal.streams import log_simple_jumper, online_p_values, shiryaev_roberts_alarms
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.files.names import IMAGE_BYTES
from idecode_core.serve import access
from idecode_core.serve import service as serving
from idecode_core.serve.access import opened, secret_seed, server_options
from idecode_core.serve.batching import SECONDS, Batcher, Overloaded
from idecode_core.serve.described import docs_page
from idecode_core.serve.service import make_service
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

    def __init__(self, detector: Detector, **options) -> None:
        self.app = make_service(detector, Settings(n=3, epsilon=0.1), **options)
        self.server = uvicorn.Server(uvicorn.Config(self.app, port=0, **server_options()))
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
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=30)
    assert refused.value.code == 413  # a sentence, not a connection that is cut while the client still sends
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
    watched = service.app.state.service.stream
    assert sorted([*calibration, *expected.scores]) == pytest.approx(watched.ranks.seen)
    assert found["idecode_log_martingale"] == pytest.approx(watched.log_martingale)
    assert found["idecode_log_shiryaev_roberts"] == pytest.approx(watched.log_sum)
    assert found["idecode_stream_points"] == len(IMAGES)


def test_the_watched_stream_goes_point_by_point_where_the_library_takes_a_whole_stream():
    generator = np.random.default_rng(3)
    calibration, stream = generator.integers(0, 30, 40) / 3, generator.integers(0, 60, 80) / 3  # with ties
    watched = WatchedStream(calibration, np.random.default_rng(5), most=80)
    path = [watched.add(score) for score in stream]
    p = online_p_values(calibration, stream, generator=np.random.default_rng(5))
    np.testing.assert_allclose(path, log_simple_jumper(p))
    assert watched.log_sum == pytest.approx(shiryaev_roberts_alarms(p, mean_time=1e300).log_path[-1])
    watched.add(0.0)
    assert (watched.points, len(watched.ranks.seen)) == (1, 41)  # it began again: memory is bounded


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


def test_with_a_delta_the_service_flags_what_the_library_flags(detector):
    expected = detector.detect(IMAGES, n=3, epsilon=0.3, delta=0.2)
    assert expected.is_ood.sum() < detector.detect(IMAGES, n=3, epsilon=0.3).is_ood.sum()
    service = make_service(detector, Settings(n=3, epsilon=0.3, delta=0.2)).state.service

    async def ask() -> list[bool]:
        running = asyncio.create_task(service.batcher.run())
        answers = [await service.answer(png(pixels)) for pixels in IMAGES]
        running.cancel()
        return [answer.is_ood for answer in answers]

    assert in_a_loop_of_its_own(ask()) == expected.is_ood.tolist()


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


def many(*files: tuple[str, bytes]) -> tuple[bytes, dict[str, str]]:
    body = b"".join(
        f'--xyz\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        + data
        + b"\r\n"
        for name, data in files
    )
    return body + b"--xyz--\r\n", {
        "Content-Type": "Multipart/Form-Data; boundary=xyz"
    }  # types are case-blind


def test_many_files_are_answered_in_their_order_and_a_bad_one_stops_none(service, detector):
    expected = detector.detect(IMAGES[:2], n=3, epsilon=0.1).p_values.tolist()
    body, headers = many(("a.png", png(IMAGES[0])), ("bad.png", b"no"), ("b.png", png(IMAGES[1])))
    status, results = service.post(body, "/detect/many", **headers)
    assert status == 200
    assert [result["file"] for result in results] == ["a.png", "bad.png", "b.png"]
    assert [results[0]["answer"]["p_value"], results[2]["answer"]["p_value"]] == expected
    assert "is not an image" in results[1]["error"]
    assert results[1]["answer"] is None


def test_a_request_may_have_settings_of_its_own(service, detector):
    expected = detector.detect(IMAGES[:1], n=2, epsilon=0.3, delta=0.2, seed=9)[0]
    status, answer = service.post(png(IMAGES[0]), "/detect?n=2&epsilon=0.3&delta=0.2&seed=9")
    assert (status, answer["p_value"], answer["is_ood"]) == (200, expected.p_value, expected.is_ood)
    assert (answer["n"], answer["epsilon"], answer["delta"]) == (2, 0.3, 0.2)
    assert service.app.state.service.stream.points == 0  # other draws are not the stream's
    assert service.post(png(IMAGES[0]), "/detect?n=5")[0] == 422
    assert "between 1 and 4" in service.post(png(IMAGES[0]), "/detect?n=5")[1]["error"]


def test_all_errors_have_one_shape_and_the_request_s_id(service):
    for path, status in (
        ("/nowhere", 404),
        ("/health", 405),
        ("/detect?n=x", 422),
        ("/detect?epsilon=2", 422),
        ("/detect?epsilom=0.01", 422),  # ignored, the answer would be at another epsilon than was meant
        ("/detect/many?aggregate=max", 422),
    ):
        found, answer = service.post(b"x", path, **{"X-Request-ID": "mine-7"})
        assert (found, {*answer}, answer["request_id"]) == (status, {"error", "request_id"}, "mine-7")
        assert isinstance(answer["error"], str)
    with urllib.request.urlopen(f"{service.address}/health", timeout=30) as answer:
        assert re.fullmatch("[0-9a-f]{32}", answer.headers["X-Request-ID"])


def test_a_client_can_be_generated_and_the_page_loads_nothing_from_elsewhere(service):
    described = json.loads(service.get("/openapi.json"))
    one = described["paths"]["/detect"]["post"]
    assert {*one["requestBody"]["content"]} == {"application/octet-stream", "multipart/form-data"}
    assert {given["name"] for given in one["parameters"]} == {"n", "epsilon", "delta", "seed"}
    assert {"200", "413", "422", "503"} <= {*one["responses"]}
    files = described["paths"]["/detect/many"]["post"]["requestBody"]["content"]["multipart/form-data"][
        "schema"
    ]
    assert files["properties"]["file"]["type"] == "array"
    page = service.get("/docs").decode()
    assert "POST /detect/many" in page
    assert "?epsilon=" in page
    assert not re.search("<script|src=|https?://", page)


def test_more_bytes_than_the_budget_are_sent_away_and_come_free_again(service, monkeypatch):
    monkeypatch.setattr(serving, "BYTES_IN_FLIGHT", 50_000)
    found, answer = service.post(bytes(60_000))
    assert (found, "try again" in answer["error"]) == (503, True)
    assert service.app.state.service.in_flight == 0
    assert service.post(png(IMAGES[0]))[0] == 200
    assert service.app.state.service.in_flight == 0


def test_a_body_that_does_not_come_is_told_so(service, monkeypatch):
    monkeypatch.setattr(serving, "BODY_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.sendall(b"POST /detect HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
        assert connection.recv(4096).startswith(b"HTTP/1.1 408")


def test_a_connection_without_a_request_is_closed(detector, monkeypatch):
    monkeypatch.setattr(access, "HEADER_SECONDS", 0.3)
    running = Running(detector)
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
        connection.sendall(b"POST /detect HTTP/1.1\r\nX-Slow: ")  # and no more
        assert connection.recv(4096) == b""
    running.stop()


def test_a_client_that_leaves_is_no_error_of_the_service(detector, capsys):
    running = Running(detector)
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
        connection.sendall(b"POST /detect HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
    deadline = time.monotonic() + 20
    while "idecode_requests_total,499" not in (found := running.metrics()) and time.monotonic() < deadline:
        time.sleep(0.05)
    running.stop()
    assert found["idecode_requests_total,499"] == 1
    assert "idecode_requests_total,500" not in found
    assert capsys.readouterr().err == ""


def test_one_stalled_client_does_not_hold_up_the_end(detector, monkeypatch, capsys):
    monkeypatch.setattr(access, "SHUTDOWN_SECONDS", 1)
    running = Running(detector)
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
        connection.sendall(b"POST /detect HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
        time.sleep(0.3)
        start = time.monotonic()
        running.stop()
        assert time.monotonic() - start < 8
        assert connection.recv(4096).startswith(b"HTTP/1.1 503")
    said = capsys.readouterr().err
    assert "Cancel 1 running task" in said  # the server's own words arrive here
    assert "Traceback" not in said


@contextmanager
def never_reading(running: Running) -> Iterator[None]:
    """A client that asks for more than the system keeps for it, and takes nothing of it; the service waits for it now."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_000)
        connection.settimeout(2)
        connection.connect(("127.0.0.1", running.port))
        with suppress(TimeoutError):
            connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 100_000)
        deadline = time.monotonic() + 60
        while not any(one.flow.write_paused for one in running.server.server_state.connections):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield


def test_a_client_that_does_not_read_its_answers_does_not_hold_up_the_end(detector, monkeypatch, capsys):
    monkeypatch.setattr(access, "SHUTDOWN_SECONDS", 1)
    running = Running(detector)
    with never_reading(running):
        start = time.monotonic()
        running.stop()
        assert time.monotonic() - start < 8
    said = capsys.readouterr().err
    assert "Cancel 1 running task" in said
    assert "Traceback" not in said


def test_a_client_that_does_not_read_its_answers_is_left(detector, monkeypatch):
    monkeypatch.setattr(access, "ANSWER_SECONDS", 1)
    running = Running(detector)
    with never_reading(running):
        deadline = time.monotonic() + 20
        while (held := len(running.server.server_state.connections)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert held == 0
    running.stop()


def test_strangers_write_nothing_into_the_log(detector, capsys, caplog, recwarn):
    """Neither by broken forms nor by settings of which each would be a warning of its own."""
    running = Running(detector)
    broken = b'--xyz\r\nContent-Disposition: form-data; name="file"\r\n\r\nabc\r\n--xyzzy'
    assert running.post(broken, **{"Content-Type": "multipart/form-data; boundary=xyz"})[0] == 400
    assert running.post(broken, **{"Content-Type": "multipart/form-data; boundary="})[0] == 400
    for epsilon in (1e-6, 2e-6):
        assert running.post(png(IMAGES[0]), f"/detect?epsilon={epsilon}")[1]["is_ood"] is False
    running.stop()
    assert (capsys.readouterr().err, caplog.messages, [str(one.message) for one in recwarn]) == ("", [], [])


def test_a_token_is_asked_for_where_one_is_set_and_health_stays_open(detector):
    running = Running(detector, token="open sesame")
    assert running.post(png(IMAGES[0]))[0] == 401
    assert running.post(png(IMAGES[0]), Authorization="Bearer wrong")[0] == 401
    assert running.post(png(IMAGES[0]), Authorization="Bearer open sesame")[0] == 200
    assert json.loads(running.get("/health"))["status"] == "ok"
    running.stop()


def test_a_generated_client_is_told_of_the_token_and_only_where_one_is_set(detector):
    described = make_service(detector, token="open sesame").openapi()
    (name,) = described["components"]["securitySchemes"]
    assert described["components"]["securitySchemes"][name] == {"type": "http", "scheme": "bearer"}
    asks = {
        path for path, methods in described["paths"].items() for one in methods.values() if "security" in one
    }
    assert asks == {"/detect", "/detect/many", "/metrics"}
    assert "Authorization: Bearer" in docs_page(described)
    without = make_service(detector).openapi()
    assert "securitySchemes" not in without["components"]
    assert "Authorization" not in docs_page(without)


def test_one_client_has_so_many_requests_a_minute(detector, monkeypatch):
    running = Running(detector, per_minute=2)
    assert [running.post(png(IMAGES[0]))[0] for _ in range(3)] == [200, 200, 429]
    monkeypatch.setattr(access, "MINUTE", 0.0)  # the next minute
    assert running.post(png(IMAGES[0]))[0] == 200
    running.stop()


def test_listening_to_others_is_said():
    assert opened("127.0.0.1", 8000, "") == ""
    assert "everyone, because no token is set" in opened("0.0.0.0", 8000, "")
    assert "whoever has the token" in opened("0.0.0.0", 8000, "t")


def test_the_secret_seed_is_kept_and_only_its_owner_can_read_it(tmp_path):
    seed = secret_seed(tmp_path / "state" / "seed")
    assert (tmp_path / "state" / "seed").stat().st_mode & 0o777 == 0o600
    assert secret_seed(tmp_path / "state" / "seed") == seed != secret_seed(tmp_path / "other")
    (tmp_path / "other").chmod(0o644)
    with pytest.raises(SettingError, match="others can read it"):
        secret_seed(tmp_path / "other")


def test_the_stream_goes_on_after_a_restart(detector, tmp_path):
    generator = np.random.default_rng(3)
    calibration, stream = generator.normal(size=40), generator.normal(1, 1, 80)
    whole = WatchedStream(calibration, np.random.default_rng(5))
    path = [whole.add(score) for score in stream]
    half = WatchedStream(calibration, first := np.random.default_rng(5))
    for score in stream[:50]:
        half.add(score)
    half.save(tmp_path / "stream.npz")
    other = WatchedStream(calibration, first)
    assert other.resume(tmp_path / "stream.npz")
    assert [other.add(score) for score in stream[50:]] == pytest.approx(path[50:])
    assert other.log_sum == pytest.approx(whole.log_sum)
    assert not WatchedStream(calibration + 1, first).resume(tmp_path / "stream.npz")  # of another calibration
    (tmp_path / "stream.npz").write_bytes(b"torn")
    assert not WatchedStream(calibration, first).resume(tmp_path / "stream.npz")
    for points in (1, 2):  # and the service keeps it
        running = Running(detector, stream_file=tmp_path / "kept.npz")
        running.post(png(IMAGES[points]))
        running.stop()
        assert running.app.state.service.stream.points == points


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
