"""`idecode pull`: detectors from a web folder, a Hugging Face repository or a zip; nothing wrong is ever kept."""

import hashlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from small import random_images, small_scorer

from idecode_core.cli.app import main
from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, IdecodeError, InputError, SettingError
from idecode_core.files.archives import File, read_zip, zip_folder
from idecode_core.folder import pull as pulling
from idecode_core.folder.detector import load_detector, save_detector


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path):
    """A server on this machine with one detector: (address, the folder that is served)."""
    folder = tmp_path / "site"
    made = Detector.calibrate("tiny", small_scorer(), random_images(20), n_max=3)
    save_detector(made, folder / "tiny")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path / "detectors"))
    return tmp_path / "detectors"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def same_scores(a: Path, b: Path) -> bool:
    one, other = (load_detector(folder, "cpu").detect(random_images(3, seed=5), n=3) for folder in (a, b))
    return np.array_equal(one.score_vectors, other.score_vectors) and np.array_equal(
        one.p_values, other.p_values
    )


def test_a_detector_from_a_web_folder_scores_as_the_original(site, home, capsys):
    address, folder = site
    with pytest.raises(SystemExit) as ended:
        main(["pull", "tiny", "--source", address, "--sha256", sha256(folder / "tiny" / "config.json")])
    assert not ended.value.code
    assert "fetched and checked" in capsys.readouterr().out
    assert same_scores(home / "tiny", folder / "tiny")
    assert (home / "tiny" / "card.md").read_text() == (folder / "tiny" / "card.md").read_text()


def test_owner_and_repository_mean_hugging_face(site, home, monkeypatch):
    address, folder = site
    shutil.copytree(folder / "tiny", folder / "someone" / "detectors" / "resolve" / "main" / "tiny")
    monkeypatch.setenv("HF_ENDPOINT", address)
    assert same_scores(pulling.pull("tiny", "someone/detectors"), folder / "tiny")
    monkeypatch.delenv("HF_ENDPOINT")
    assert pulling.web_folder("a/b", "c") == "https://huggingface.co/a/b/resolve/main/c"


def test_a_detector_from_a_zip(site, home):
    address, folder = site
    (folder / "mine.zip").write_bytes(zip_folder(folder / "tiny", "tiny"))
    found = pulling.pull(f"{address}/mine.zip", sha256=sha256(folder / "mine.zip"))
    assert found == home / "mine"
    assert same_scores(found, folder / "tiny")


def tamper(folder: Path, what: str) -> None:
    if what == "weights":
        save_detector(
            Detector.calibrate("x", small_scorer(seed=1), random_images(20), n_max=3), folder.parent / "other"
        )
        shutil.copy(folder.parent / "other" / "model.safetensors", folder / "model.safetensors")
    elif what == "calibration":
        data = bytearray((folder / "calibration.npz").read_bytes())
        data[-40] ^= 1
        (folder / "calibration.npz").write_bytes(data)
    elif what == "missing":
        (folder / "calibration.npz").unlink()
    elif what == "climbing":
        config = json.loads((folder / "config.json").read_text())
        config["files"]["../../evil.npz"] = "0" * 64
        (folder / "config.json").write_text(json.dumps(config))
    elif what == "text":
        (folder / "config.json").write_text("<html>")
    elif what == "list":
        (folder / "config.json").write_text("[]")


@pytest.mark.parametrize("what", ["weights", "calibration", "missing", "climbing", "text", "list"])
def test_what_is_wrong_is_refused_and_nothing_is_kept(what, site, home):
    address, folder = site
    tamper(folder / "tiny", what)
    with pytest.raises((CheckpointError, InputError)) as refused:
        pulling.pull("tiny", address, report=lambda _: None)
    assert "\n" not in str(refused.value)
    assert not home.exists()
    assert not list(home.parent.rglob("evil.npz"))


def test_another_sha256_than_the_given_one_is_refused(site, home):
    address, _ = site
    with pytest.raises(CheckpointError, match="not the one that was given"):
        pulling.pull("tiny", address, sha256="0" * 64)
    assert not home.exists()


def test_names_addresses_and_places_that_cannot_be(site, home):
    address, folder = site
    with pytest.raises(InputError, match="404"):
        pulling.pull("nothing", address)
    with pytest.raises(InputError, match="cannot be fetched"):
        pulling.pull("tiny", "http://127.0.0.1:9")
    for name in ("../tiny", "/tiny", "a/b", ".."):
        with pytest.raises(SettingError, match="not a detector's name"):
            pulling.pull(name, address)
    with pytest.raises(SettingError, match="not an address"):
        pulling.pull("tiny", f"file://{folder}")
    with pytest.raises(SettingError, match="not an address"):
        pulling.pull(f"file://{folder}/mine.zip")
    for fetch in (partial(pulling.pull, "tiny"), pulling.pull):
        with pytest.raises(SettingError, match="not an address"):
            fetch("http://[::1/mine.zip")
        with pytest.raises(SettingError, match="plain http"):
            fetch("http://example.org/tiny.zip")
    pulling.pull("tiny", address)
    with pytest.raises(CheckpointError, match="already holds a detector"):
        pulling.pull("tiny", address)


def test_a_file_without_an_end_is_cut_off(site):
    address, folder = site
    (folder / "large").write_bytes(bytes(3_000_000))
    with pytest.raises(InputError, match="more than a detector may have"):
        pulling.download(f"{address}/large", lambda _: None, most_bytes=2_000_000)


def test_without_a_checkout_pulled_and_bundled_detectors_lie_together(site, tmp_path, monkeypatch):
    address, folder = site
    from idecode_core.folder import settings

    shutil.copytree(folder / "tiny", tmp_path / "package" / "brought")
    monkeypatch.setattr(settings, "BUNDLED", tmp_path / "package")
    monkeypatch.setattr(settings, "CHECKPOINTS", tmp_path / "no checkout" / "checkpoints")
    monkeypatch.delenv("IDECODE_CHECKPOINTS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert settings.checkpoint_root() == tmp_path / "package"
    pulling.pull("tiny", address)
    root = settings.checkpoint_root()
    assert root == tmp_path / "share" / "idecode" / "detectors"
    assert {path.name for path in root.iterdir()} == {"brought", "tiny"}
    assert settings.find_detector("tiny") == root / "tiny"


def test_a_zip_may_hold_files_up_to_the_limit_of_a_detector():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("tiny/model.safetensors", bytes(51 * 2**20))
    file = File("tiny.zip", buffer.getvalue())
    assert "expected at most 50 MB" in read_zip(file, (".safetensors",)).refused[0]
    found = read_zip(file, (".safetensors",), member_bytes=pulling.MOST_BYTES)
    assert [len(member.data) for member in found.files] == [51 * 2**20]


def answering(answer: bytes) -> tuple[socket.socket, str]:
    """A server that says this to each who comes."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return server, f"http://127.0.0.1:{server.getsockname()[1]}/mine.zip"


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",  # BadStatusLine
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",  # IncompleteRead
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://[::1/\r\n\r\n",  # ValueError
        b"HTTP/1.1 302 Found\r\nLocation: /mine.zip\r\n\r\n",  # for ever, which urllib tells in three lines
        b"HTTP/1.1 404 Not\r\n Found\r\n\r\n",
    ],
)
def test_a_server_that_speaks_nonsense_is_one_sentence(home, answer):
    server, url = answering(answer)
    with server, pytest.raises((InputError, CheckpointError)) as refused:
        pulling.pull(url, report=lambda _: None)
    assert "\n" not in str(refused.value)


def test_a_redirect_to_plain_http_elsewhere_is_refused_without_a_sha256(home):
    server, url = answering(b"HTTP/1.1 302 Found\r\nLocation: http://203.0.113.7/mine.zip\r\n\r\n")
    with server, pytest.raises(SettingError, match="plain http"):
        pulling.pull(url, report=lambda _: None)
    pulling.check_vouched("http://203.0.113.7/mine.zip", "0" * 64)  # with one, it is followed


@pytest.mark.parametrize("sha256", ["", "0" * 64])
@pytest.mark.parametrize("target", ["ftp://203.0.113.7/mine.zip", "file:///etc/hostname", "data:,x"])
def test_a_redirect_away_from_the_web_is_refused(home, target, sha256):
    server, url = answering(f"HTTP/1.1 302 Found\r\nLocation: {target}\r\n\r\n".encode())
    with server, pytest.raises(IdecodeError, match=r"not an address|is not allowed"):
        pulling.pull(url, sha256=sha256, report=lambda _: None)


def test_a_registry_says_where_names_come_from(site, home, tmp_path, monkeypatch, capsys):
    address, folder = site
    monkeypatch.setenv("IDECODE_REGISTRY", str(tmp_path / "registry.json"))
    (folder / "mine.zip").write_bytes(zip_folder(folder / "tiny", "tiny"))
    entries = {
        "tiny": {"source": address, "sha256": sha256(folder / "tiny" / "config.json")},
        "packed": {"source": f"{address}/mine.zip"},
        "changed": {"source": f"{address}/mine.zip", "sha256": "0" * 64},
        "../climbs": {"source": f"{address}/mine.zip"},
    }
    (tmp_path / "registry.json").write_text(json.dumps(entries))
    for words in (["--list"], ["tiny"], ["packed"]):
        with pytest.raises(SystemExit) as ended:
            main(["pull", *words])
        assert not ended.value.code
    assert f"packed  {address}/mine.zip" in capsys.readouterr().out
    assert same_scores(home / "tiny", home / "packed")
    with pytest.raises(CheckpointError, match="another file"):
        pulling.pull("changed", report=lambda _: None)
    with pytest.raises(SettingError, match=r"which knows tiny, packed, changed"):
        pulling.pull("unknown")
    with pytest.raises(SettingError, match="is not a detector's name"):
        pulling.pull("../climbs", report=lambda _: None)
    for text in ("[]", '{"a": 3}', '{"a": {"source": 3}}', "{"):
        (tmp_path / "registry.json").write_text(text)
        with pytest.raises(SettingError, match="registry of detectors"):
            pulling.read_registry()


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGTERM to hand on")
def test_the_signal_to_stop_reaches_the_app_s_own_process():
    """`idecode app` left Streamlit behind, and ended with 250 where a library aborted on the way out."""
    inner = (
        "import os, signal, time; signal.signal(signal.SIGTERM, lambda *_: os.abort()); "
        "print(os.getpid(), flush=True); time.sleep(60)"
    )
    outer = (
        "import sys; from idecode_core.cli.app import run_until_told; "
        f"sys.exit(run_until_told([sys.executable, '-c', {inner!r}]))"
    )
    with subprocess.Popen([sys.executable, "-c", outer], stdout=subprocess.PIPE, text=True) as started:
        child = int(started.stdout.readline())
        started.terminate()
        assert started.wait(20) == 143  # docs/commands.md
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
