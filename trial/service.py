"""Part 6: the service under attack. Bad files, large ones, clients that leave, stall, do not read or send no HTTP, and the end of it
all; a good file has the library's p-value afterwards."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from PIL import Image

from idecode_core.folder.detector import save_detector
from trial import small
from trial.bad_files import bad_files, saved
from trial.table import Outcome

MOST_MEGABYTES = 2048.0  # of the whole service above idle, whatever is posted at once
PATIENCE = 300.0
END_SECONDS = 45.0
"""Within which SIGTERM must end the service, on a busy machine; 5 are promised for an idle one."""
HEAD = b"POST /detect HTTP/1.1\r\nHost: x\r\n"
STALLS = (
    b"",
    b"POST /detect HTTP/1.1\r\n",
    HEAD + b"Content-Length: 900\r\n\r\nabc",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\nabc",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
    HEAD + b"Content-Length: -5\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 5_000,  # and the answers are not read
)


@dataclass
class Running:
    """`idecode serve` in a process of its own."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    def post(self, data: bytes) -> tuple[int, dict[str, Any]] | Exception:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/detect", data, {"Content-Type": "application/octet-stream"}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
        except Exception as error:
            return error

    def megabytes(self) -> float:
        return float(psutil.Process(self.process.pid).memory_info().rss / 2**20)

    def stalled(self, sent: bytes) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        client.settimeout(1)
        with suppress(TimeoutError, OSError):
            client.sendall(sent)
        return client


def started(root: Path) -> Running:
    root.mkdir(parents=True)
    save_detector(small.detector("served"), root / "served")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        *(sys.executable, "-m", "idecode_core", "serve", "--detector", str(root / "served"), "--n", "3", "--epsilon", "0.1"),
        *("--no-secret-seed", "--port", str(port), "--state", str(root / "state")),
    ]  # fmt: skip
    with (root / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stderr=log, stdout=log, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
    running, end = Running(process, port, root / "log"), time.monotonic() + PATIENCE
    while isinstance(running.post(b""), Exception):
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            raise RuntimeError(f"the service did not start: {running.log.read_text()[-500:]}")
        time.sleep(0.2)
    return running


def try_service(short: bool, seed: int, root: Path) -> Iterator[Outcome]:
    running = started(root)
    pixels = small.pictures(1, seed + 11)[0]
    good = saved(Image.fromarray(pixels), "PNG")
    expected = small.detector("served").detect(pixels[None], n=3, epsilon=0.1)[0].p_value
    try:
        files = [file.data for file in bad_files(seed, changes=2, large=False) if file.kind == "image"]
        yield posted(running, "bad files, eight clients at once", files[:60] if short else files)
        large = saved(Image.new("RGBA", (7_000, 7_000), (9, 9, 9, 9)), "WEBP")
        count = 3 if short else 12
        yield posted(running, f"49 megapixels with transparency, {count} at once", [large] * count, count)
        yield try_stalls(running, good, expected)
    finally:
        running.process.kill()
        running.process.wait()


def posted(running: Running, what: str, files: list[bytes], clients: int = 8) -> Outcome:
    """A verdict, a sentence, or 503; within so much memory."""
    outcome, idle = Outcome("service", what), running.megabytes()
    with outcome.timed(), ThreadPoolExecutor(clients) as pool:
        answers = [pool.submit(running.post, data) for data in files]
        while not all(one.done() for one in answers):
            outcome.weigh(running.megabytes() - idle)
            time.sleep(0.02)
    for one in answers:
        answer, outcome.cases = one.result(), outcome.cases + 1
        if isinstance(answer, TimeoutError):
            outcome.blame("hangs", str(answer))
        elif isinstance(answer, Exception) or (answer[0] >= 500 and answer[0] != 503):
            outcome.blame("tracebacks", str(answer)[:200])
        elif answer[0] != 200 and not isinstance(answer[1].get("error"), str):
            outcome.blame("wrong", f"no sentence: {answer}"[:200])
    if (outcome.most_megabytes or 0) > MOST_MEGABYTES:
        outcome.blame("wrong", f"{outcome.most_megabytes:.0f} MB")
    return outcome


def try_stalls(running: Running, good: bytes, expected: float) -> Outcome:
    """Clients that leave at once, then clients that stay and stall while a good file is posted and the service is ended."""
    outcome = Outcome("service", "clients that leave, stall, do not read; SIGTERM")
    with outcome.timed():
        for sent in STALLS:
            outcome.cases += 1
            running.stalled(sent).close()
        clients = [running.stalled(sent) for sent in STALLS]
        outcome.cases += len(clients)
        answer = running.post(good)
        if isinstance(answer, Exception) or (answer[0], answer[1].get("p_value")) != (200, expected):
            outcome.blame("wrong", f"expected p = {expected}, got {answer}"[:200])
        running.process.send_signal(signal.SIGTERM)
        try:
            running.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            outcome.blame("hangs", f"SIGTERM did not end the service within {END_SECONDS:.0f} s")
        for client in clients:
            client.close()
    if "Traceback" in (said := running.log.read_text(errors="replace")):
        outcome.blame("tracebacks", said[-300:])
    return outcome
