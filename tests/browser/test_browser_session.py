"""JupyterLab and the app in a real browser, two views of one session: a notebook opens the app on twelve pictures inside itself, a
person tags two as wrong and moves epsilon there, the notebook reads both back; the page becomes a notebook that runs elsewhere; and
another process opens the session by its name and sees the same."""

import base64
import io
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from browser import PATIENCE, free_port, settled
from nbclient import NotebookClient
from PIL import Image
from playwright.sync_api import FrameLocator, Page, expect

from idecode_core import load_detector, studio
from idecode_core.session import Session

HOME = Path(__file__).parents[2]
CELLS = (
    """\
from idecode_core import load_detector, studio

detector = load_detector("fashion-rotations")
detection = detector.detect("pictures", n=5)
detection""",
    'studio.open(detection, name="twelve")',
    """\
session = studio.session()
print("read back:", sorted(one.name for one in session.tagged("wrong verdict")), session.settings.epsilon)""",
    "studio.close()",
)
PLOTLY = "application/vnd.plotly.v1+json"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of twelve pictures and a notebook; sessions lie beside them."""
    monkeypatch.setenv("IDECODE_SESSIONS", str(tmp_path / "idecode" / "sessions"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    (tmp_path / "pictures").mkdir()
    for i, x in enumerate(np.random.default_rng(3).integers(0, 256, (12, 28, 28, 3), dtype=np.uint8)):
        Image.fromarray(x).save(tmp_path / "pictures" / f"{i:02}.png")
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    nbformat.write(
        nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), tmp_path / "work.ipynb"
    )
    return tmp_path


@contextmanager
def jupyterlab(root: Path) -> Iterator[str]:
    """A JupyterLab on a folder; its address and token. Ends the server that it started."""
    from jupyter_server.serverapp import list_running_servers

    port = free_port()
    server = subprocess.Popen(
        [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.port={port}",
            f"--ServerApp.root_dir={root}", "--ServerApp.port_retries=0",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=",
        ],
        env={**os.environ, "JUPYTER_TOKEN": "test", "JUPYTER_CONFIG_DIR": str(root / "config")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        end = time.monotonic() + 180
        while not [one for one in list_running_servers() if one["port"] == port]:
            assert server.poll() is None, "JupyterLab ended"
            assert time.monotonic() < end, "JupyterLab did not start"
            time.sleep(0.2)
        yield f"http://localhost:{port}"
    finally:
        server.terminate()
        server.wait(timeout=60)


def run_cell(page: Page, place: int) -> None:
    page.locator(".jp-Notebook .jp-CodeCell").nth(place).locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")


def quiet(frame: FrameLocator, page: Page) -> None:
    """Wait until the app inside of the frame has run to its end, and stays so."""
    done = frame.locator("[data-testid=stApp][data-test-script-state=notRunning]")
    expect(done).to_be_attached()
    page.wait_for_timeout(500)
    expect(done).to_be_attached()


def figures_of(notebook: Any) -> list[dict[str, Any]]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"][PLOTLY] for output in outputs if PLOTLY in output.get("data", {})]


def unpacked(values: Any) -> Any:
    """The numbers of a trace, from a list or from Plotly's packed form."""
    packed = isinstance(values, dict)
    return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]) if packed else np.array(values)


def test_a_notebook_and_the_app_are_two_views_of_one_session(work: Path, visitor: Page) -> None:
    detector = load_detector(HOME / "checkpoints" / "fashion-rotations")
    expected = detector.detect(work / "pictures", n=5)
    order = np.lexsort((-expected.scores, expected.p_values))
    strangest = sorted(Path(expected.names[i]).name for i in order[:2])
    third = detector.detect(work / "pictures", n=5, epsilon=0.2)[int(order[2])]
    with jupyterlab(work) as address:
        try:
            visitor.goto(f"{address}/lab/tree/work.ipynb?token=test")
            expect(visitor.locator(".jp-Notebook .jp-CodeCell")).to_have_count(len(CELLS))
            expect(visitor.get_by_role("button", name="| Idle")).to_be_visible()  # the kernel is there
            run_cell(visitor, 0)
            shown = visitor.locator(".jp-OutputArea-output")
            expect(shown.get_by_text("of 12 flagged")).to_be_visible()
            expect(shown.locator("img")).to_have_count(12)
            # The app opens inside of the notebook; a person tags two and moves epsilon there.
            run_cell(visitor, 1)
            app = visitor.frame_locator(".jp-OutputArea-output iframe")
            expect(app.get_by_text("12 pictures of the session twelve")).to_be_visible()
            quiet(app, visitor)
            expect(
                app.get_by_role("link", name="Evaluate")
            ).not_to_be_in_viewport()  # no sidebar in the notebook
            for _ in range(2):
                app.get_by_test_id("stButtonGroup").get_by_role("button", name="wrong verdict").click()
                quiet(app, visitor)
                app.get_by_role("button", name="Less strange").click()
                quiet(app, visitor)
            app.get_by_role("spinbutton", name="epsilon, exactly").fill("0.2")
            app.get_by_role("spinbutton", name="epsilon, exactly").press("Enter")
            quiet(app, visitor)
            # The page as a zip, and as a notebook in this JupyterLab.
            download = app.get_by_test_id("stDownloadButton").get_by_role(
                "button", name="Notebook", exact=True
            )
            with visitor.expect_download() as started:
                download.click()
            packed = Path(started.value.path()).read_bytes()
            drawn = app.locator(".st-key-aggregate_chart .js-plotly-plot").first
            expect(drawn).to_contain_text(f"flagged above {third.threshold:.3g}")  # it has followed epsilon
            expect(drawn).to_contain_text(f"this input: {third.score:.3g}")
            # `data` is what was sent, numbers packed; `_fullData` is what Plotly drew.
            on_page = drawn.evaluate("plot => plot._fullData.map(one => [[...one.x], [...one.y]])")
            app.get_by_role("button", name="Open as notebook").click()
            link = app.get_by_role("link", name="Go to the notebook")
            expect(link).to_be_visible()
            href = str(link.get_attribute("href"))
            assert href.startswith(address)  # the JupyterLab that runs, not another one
            run_cell(visitor, 2)
            expect(shown.get_by_text(f"read back: {strangest} 0.2")).to_be_visible()
            # The exported notebook, run in JupyterLab.
            visitor.goto(href)
            panel = visitor.locator(
                ".jp-NotebookPanel:not(.lm-mod-hidden)"
            )  # the other notebook is in a tab behind it
            expect(
                panel.get_by_role("paragraph").filter(has_text="What the Inspect page showed, computed again")
            ).to_be_visible()
            expect(visitor.get_by_role("button", name="| Idle")).to_be_visible()  # the kernel is there
            panel.locator(".jp-CodeCell").first.locator(".cm-content").click()
            visitor.get_by_role("menuitem", name="Run", exact=True).click()
            visitor.get_by_role("menuitem", name="Run All Cells", exact=True).click()
            expect(visitor.get_by_text("As on the page: exactly")).to_be_attached()
        finally:
            studio.close()
    assert studio.running() is None
    # In an empty folder: the numbers and the figures of the page.
    empty = work / "empty"
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(empty)
    notebook = nbformat.read(empty / "inspection.ipynb", as_version=4)
    NotebookClient(
        notebook,
        timeout=PATIENCE // 1000,
        kernel_name="python3",
        resources={"metadata": {"path": str(empty)}},
    ).execute()
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert "As on the page: exactly" in printed
    figures = figures_of(notebook)
    assert len(figures) == 4  # the score among the others, the waterfall, the draws, p as n grows
    among = figures[0]["data"]
    assert (
        len(on_page) == len(among) == 4
    )  # the bars below the threshold and above, the threshold, this input
    assert len(on_page[0][0]) + len(on_page[1][0]) == 60
    for (x, y), trace in zip(on_page, among, strict=True):
        np.testing.assert_allclose(unpacked(trace["x"]), x, rtol=1e-4)
        np.testing.assert_allclose(unpacked(trace["y"]), y)
    # The next day, in a new process, by its name.
    code = (
        "import json; from idecode_core import Session; s = Session.open('twelve'); "
        "print(json.dumps([sorted(one.name for one in s.tagged('wrong verdict')), s.settings.epsilon, s.p_values.tolist(), s.is_ood]))"
    )
    there = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=empty
    )
    tagged, epsilon, p_values, is_ood = json.loads(there.stdout)
    assert (tagged, epsilon, p_values) == (strangest, 0.2, expected.p_values.tolist())
    assert is_ood == (expected.p_values < 0.2).tolist()
    try:
        visitor.goto(studio.open(Session.open("twelve")).link)
        expect(visitor.get_by_text("12 pictures of the session twelve")).to_be_visible()
        settled(visitor)
        assert "token" not in visitor.url
        visitor.reload()
        expect(visitor.get_by_text("12 pictures of the session twelve")).to_be_visible()
        settled(visitor)
        expect(visitor.get_by_role("spinbutton", name="epsilon, exactly")).to_have_value("0.2")
        expect(visitor.get_by_text(f"{sum(is_ood)} of 12 files flagged")).to_be_visible()
        pressed = visitor.get_by_test_id("stButtonGroup").get_by_role("button", name="wrong verdict")
        expect(pressed).to_have_attribute("aria-pressed", "true")
    finally:
        studio.close()
