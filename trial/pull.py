"""Part 7: `pull` from a server that sends damaged and hostile detectors, or speaks nonsense: the detector whole, or one sentence;
what was there stays."""

import os
import shutil
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from idecode_core.errors import IdecodeError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.pull import pull
from trial import small
from trial.table import Outcome

LIES = (
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://[::1/\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://203.0.113.7/mine.zip\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: ftp://203.0.113.7/mine.zip\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: file:///etc/hostname\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: /lie-9.zip\r\n\r\n",
)
"""Answers to /lie-0.zip, /lie-1.zip and so on."""


class Server(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        number = self.path.removeprefix("/lie-").removesuffix(".zip")
        if number != self.path and number.isdigit():
            self.wfile.write(LIES[int(number)])
            self.close_connection = True
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def try_pull(seed: int, count: int, root: Path) -> Iterator[Outcome]:
    site, home = root / "site", root / "home"
    site.mkdir(parents=True)
    save_detector(small.detector("whole"), site / "whole")
    save_detector(small.detector("kept", seed=1), home / "kept")
    os.environ["IDECODE_CHECKPOINTS"] = str(home)  # where a bare name lies
    with served(site) as address:
        yield try_damaged(np.random.default_rng(seed), count, site, home, address)
        yield try_hostile(site, home, address)


def try_damaged(generator: np.random.Generator, count: int, site: Path, home: Path, address: str) -> Outcome:
    """Bytes of a zip changed, or its end cut off."""
    outcome = Outcome("pull", "damaged downloads")
    shutil.make_archive(str(site / "good"), "zip", site, "whole")
    good = (site / "good.zip").read_bytes()
    with outcome.timed():
        for i in range(count):
            data = bytearray(good)
            for _ in range(int(generator.integers(1, 4))):
                data[int(generator.integers(len(data)))] ^= int(generator.integers(1, 256))
            kept = data[: int(generator.integers(len(data)))] if i % 3 == 0 else data
            (site / "bad.zip").write_bytes(bytes(kept))
            out = home / f"new-{i}"
            fetch = partial(pull, f"{address}/bad.zip", out=out, report=silent)
            if outcome.is_refused("a damaged zip", fetch):
                if out.exists():
                    outcome.blame("wrong", "a refused detector is there")
            else:
                check_whole(outcome, out, "whole")
                shutil.rmtree(out)
    return outcome


def try_hostile(site: Path, home: Path, address: str) -> Outcome:
    """Names that lead elsewhere, zips that climb out, servers that lie; each is told to replace a detector, which must survive."""
    outcome = Outcome("pull", "hostile names, zips and servers")
    with zipfile.ZipFile(site / "slip.zip", "w") as archive:
        for name in ("../../escaped.txt", "whole/../../escaped.txt", "/escaped.txt", "whole/config.json"):
            archive.writestr(name, "{}")
    (site / "text.zip").write_text("no zip")
    (site / "index.html").write_bytes((site / "good.zip").read_bytes())  # whatever has no name is a detector
    before = contents(home)
    zips = ("slip.zip", "text.zip", "none.zip", *(f"lie-{i}.zip" for i in range(len(LIES))))
    with outcome.timed():
        for name in zips:
            for out in (home / "kept", home / "fresh"):
                fetch = partial(pull, f"{address}/{name}", out=out, replace=True, report=silent)
                outcome.is_refused(f"{name} as {out.name}", fetch, must_fail=True)
        for name in ("", "?id=mine.zip", "..", "../", ".hidden.zip", "%00.zip#/..", "[", "kept/.."):
            fetch = partial(pull, f"{address}/{name}", replace=True, report=silent)
            outcome.is_refused(f"the address {name!r}", fetch, must_fail=True)
        for name in ("..", "", "/", "none", "whole/../..", ".", "~", "kept/../.."):
            fetch = partial(pull, name, address, replace=True, report=silent)
            outcome.is_refused(f"the name {name!r}", fetch, must_fail=True)
        for url in (
            "http://[",
            "ftp://127.0.0.1/a.zip",
            "file:///a.zip",
            "http://203.0.113.7/a.zip",
            "a.zip",
            "",
        ):
            outcome.is_refused(url, partial(pull, url, replace=True, report=silent), must_fail=True)
    check_whole(outcome, home / "kept", "kept")
    if contents(home) != before or list(home.parents[1].rglob("escaped.txt")):
        outcome.blame("wrong", "something else was written or is gone")
    return outcome


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def silent(_: str) -> None:
    pass


def check_whole(outcome: Outcome, folder: Path, name: str) -> None:
    try:
        if load_detector(folder, "cpu").name != name:
            outcome.blame("wrong", f"{folder.name} is not {name}")
    except IdecodeError as error:
        outcome.blame("wrong", f"{folder.name}: {error}")
