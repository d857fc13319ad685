"""`idecode serve`: the library's answers over HTTP, in batches, with limits, clear errors and metrics."""

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
from io import BytesIO

import numpy as np
import pytest
import uvicorn
from dockerfile import stages
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families
from small import random_images, small_scorer

from idecode_core.cli.app import main
from idecode_core.conformal.settings import Settings
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.serve.access import secret_seed, server_options
from idecode_core.serve.service import make_service

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


def test_the_secret_seed_is_kept_and_only_its_owner_can_read_it(tmp_path):
    seed = secret_seed(tmp_path / "state" / "seed")
    assert (tmp_path / "state" / "seed").stat().st_mode & 0o777 == 0o600
    assert secret_seed(tmp_path / "state" / "seed") == seed != secret_seed(tmp_path / "other")
    (tmp_path / "other").chmod(0o644)
    with pytest.raises(SettingError, match="others can read it"):
        secret_seed(tmp_path / "other")
