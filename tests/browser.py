"""The app in a real browser: one server and one Chromium for all browser tests, a clean context for each visitor."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

ROOT = Path(__file__).parent.parent
PATIENCE = 180_000  # milliseconds; the first page imports torch, perhaps on a busy machine
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(script: Path, **variables: str) -> Iterator[str]:
    """A Streamlit script on a free port; its address. Ends the server it started."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
    server = subprocess.Popen(
        [*command, "--server.headless", "true"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://localhost:{port}"
    try:
        wait_for(address)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


def wait_for(address: str, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise TimeoutError(f"No answer from {address} within {seconds} s.")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium where there is one, else Playwright's own."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    as_root = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*QUIET, *as_root])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def app_url() -> Iterator[str]:
    with served(ROOT / "app.py") as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Page]:
    """A new visitor: own cookies, own session."""
    with visit(browser) as page:
        yield page


@contextmanager
def visit(
    browser: Browser, width: int = 1400, height: int = 900, theme: Literal["light", "dark"] = "light"
) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    context.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    yield context.new_page()
    context.close()


def verdict(page: Page) -> Locator:
    """The heading that says flagged or not."""
    return page.get_by_test_id("stMain").locator("h2").filter(has_text="calibration").first


def settled(page: Page) -> None:
    """Wait until the script has ended and stays so."""
    expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()
    page.wait_for_timeout(300)
    expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()


def drop_in(page: Page, *files: tuple[str, bytes]) -> None:
    """Upload into the page's file box."""
    page.locator("input[type=file]").first.set_input_files(
        [{"name": name, "mimeType": "image/png", "buffer": data} for name, data in files]
    )
