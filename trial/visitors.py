"""Part 12: many browser sessions at once, and for a long time. Each gets its own answer, and nothing leaves the machine."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil
from PIL import Image

from idecode_core.conformal.judge import Verdict
from idecode_core.folder.detector import load_detector
from idecode_core.image.sets import load_images
from idecode_core.verdict import comparison
from trial.bad_files import saved
from trial.progress import Progress
from trial.table import Outcome

ROOT = Path(__file__).parent.parent
SETS = ("fashion-sample", "digits-sample", "photos-sample", "textures-sample")
EPSILON, N = 0.05, 5
MOST_GROWTH = 1024.0  # MB of the server's memory over the whole soak


def expected(count: int, seed: int) -> list[tuple[bytes, int, Verdict]]:
    """Pictures with the seed of their draws, and what Algorithm 1 says of them, computed without the app."""
    detector = load_detector(ROOT / "checkpoints" / "fashion-rotations", "cpu")
    sets, generator = [load_images(name).x for name in SETS], np.random.default_rng(seed)
    found = []
    for i in range(count):
        images = sets[i % len(sets)]
        pixels, own = images[generator.integers(len(images))], int(generator.integers(1000))
        verdict = detector.detect(pixels[None], n=N, epsilon=EPSILON, seed=own)[0]
        found.append((saved(Image.fromarray(pixels), "PNG"), own, verdict))
    return found


class Visitor:
    """One browser session of its own: a link with its settings, an upload, and the verdict that it is shown."""

    def __init__(self, page: Any, address: str, case: tuple[bytes, int, Verdict], remote: list[str]) -> None:
        self.page, self.address = page, address
        self.data, self.seed, self.verdict = case
        host = urlsplit(address).netloc
        page.on("request", lambda request: self.watch(request.url, host, remote))

    @staticmethod
    def watch(url: str, host: str, remote: list[str]) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != host:
            remote.append(url)

    def arrive(self) -> None:
        link = f"{self.address}/inspect?detector=fashion-rotations&n={N}&epsilon={EPSILON}&seed={self.seed}"
        self.page.goto(link, wait_until="commit")

    def upload(self) -> None:
        main = self.page.get_by_test_id("stMain")
        main.get_by_text("Files", exact=True).click()
        self.page.locator("input[type=file]").first.set_input_files(
            [{"name": "mine.png", "mimeType": "image/png", "buffer": self.data}]
        )

    def problem(self, patience: float) -> str:
        """What is wrong with what the page says; "" if nothing is."""
        words = comparison(self.verdict.p_value, EPSILON)
        heading = self.page.get_by_test_id("stMain").locator("h2").filter(has_text=words).first
        try:
            heading.wait_for(timeout=1000 * patience)
        except Exception:
            shown = " / ".join(self.page.get_by_test_id("stMain").locator("h2").all_inner_texts())[:200]
            return f"expected {words}, shown: {shown or 'nothing'}"
        text = self.page.get_by_test_id("stMain").inner_text()
        return "an error on the page" if "Something went wrong" in text or "Traceback" in text else ""


@contextmanager
def visitors(browser: Any, address: str, cases: list[Any], remote: list[str]) -> Iterator[list[Visitor]]:
    with ExitStack() as stack:
        made = []
        for case in cases:
            context = browser.new_context(viewport={"width": 1200, "height": 800})
            context.set_default_timeout(240_000)
            stack.callback(context.close)
            made.append(Visitor(context.new_page(), address, case, remote))
        yield made


def visit(sessions: list[Visitor], outcome: Outcome, patience: float) -> None:
    """All arrive, all upload, and then each must be shown its own verdict; `patience` is for all of them together."""
    for step in ("arrive", "upload"):
        for session in sessions:
            try:
                getattr(session, step)()
            except Exception as error:
                outcome.blame("hangs", f"{step}: {str(error).splitlines()[0]}")
    end = time.monotonic() + patience
    for session in sessions:
        outcome.cases += 1
        if words := session.problem(max(end - time.monotonic(), 1.0)):
            outcome.blame("wrong", words)


def try_visitors(
    browser: Any, address: str, count: int, seed: int, patience: float = 240.0
) -> Iterator[Outcome]:
    """Each in a session of its own, all at the same time."""
    outcome, requests = (
        Outcome("browser", f"{count} sessions at once"),
        Outcome("browser", "requests that leave the machine"),
    )
    begin = time.monotonic()
    remote: list[str] = []
    with visitors(browser, address, expected(count, seed), remote) as sessions:
        visit(sessions, outcome, patience)
    outcome.seconds = time.monotonic() - begin
    requests.cases = count
    for url in dict.fromkeys(remote):
        requests.blame("wrong", url)
    yield outcome
    yield requests


def try_soak(browser: Any, address: str, seconds: float, seed: int, server: int) -> Iterator[Outcome]:
    """Visitors come and go, three at a time; the server's memory must not grow with their number."""
    outcome = Outcome("browser", f"soak of {seconds:.0f} seconds, visits")
    begin, remote = time.monotonic(), list[str]()
    memory, progress = [megabytes(server)], Progress("soak", seconds, "seconds")
    while time.monotonic() - begin < seconds:
        with visitors(browser, address, expected(3, seed + outcome.cases), remote) as sessions:
            visit(sessions, outcome, 120.0)
        progress(time.monotonic() - begin)
        memory.append(megabytes(server))
        if len(memory) == 3:
            memory[0] = memory[-1]  # detectors and pages are loaded by now
    growth = memory[-1] - memory[0]
    outcome.weigh(growth)
    if growth > MOST_GROWTH:
        outcome.blame("wrong", f"the server grew by {growth:.0f} MB")
    for url in dict.fromkeys(remote):
        outcome.blame("wrong", url)
    outcome.seconds = time.monotonic() - begin
    yield outcome


def try_browser(short: bool, seed: int) -> Iterator[Outcome]:
    from tests.browser import chromium, served

    with served(ROOT / "app.py") as address, chromium() as browser:
        yield from try_visitors(browser, address, 3 if short else 20, seed)
        yield from try_soak(browser, address, 20 if short else 600, seed, server_of(address))


def megabytes(process: int) -> float:
    """What a process uses now."""
    return float(psutil.Process(process).memory_info().rss / 2**20)


def server_of(address: str) -> int:
    """The process that listens at an address of this machine, among those that this one started."""
    port = urlsplit(address).port
    return next(int(c.pid) for c in psutil.Process().children(recursive=True) if str(port) in c.cmdline())
