"""The service's answers: requests good and bad, limits, and clients that stall or leave."""

# ruff: noqa: F811  `detector` and `service` are fixtures of another file

import asyncio
import json
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from small import in_a_loop_of_its_own
from test_serve import IMAGES, Running, detector, png, service  # noqa: F401  fixtures

from idecode_core import __version__
from idecode_core.conformal.settings import Settings
from idecode_core.files.names import IMAGE_BYTES
from idecode_core.serve import access
from idecode_core.serve import service as serving
from idecode_core.serve.service import make_service


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
    for path, status, words in (
        ("/nowhere", 404, ""),
        ("/health", 405, ""),
        ("/detect?n=x", 422, "got x. Correct it"),
        ("/detect?epsilon=2", 422, "less than 1, got 2. Correct it"),
        # ignored, the answer would be at another epsilon than was meant
        ("/detect?epsilom=0.01", 422, "epsilom: expected n, epsilon, delta, seed"),
        ("/detect/many?aggregate=max", 422, "aggregate: expected n, epsilon"),
    ):
        found, answer = service.post(b"x", path, **{"X-Request-ID": "mine-7"})
        assert (found, {*answer}, answer["request_id"]) == (status, {"error", "request_id"}, "mine-7")
        assert words in answer["error"]
    with urllib.request.urlopen(f"{service.address}/health", timeout=30) as answer:
        assert re.fullmatch("[0-9a-f]{32}", answer.headers["X-Request-ID"])


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
