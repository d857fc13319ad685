"""What a visitor downloads in a real browser says the same as the screen, and can be computed again."""

import io
import json
import re
import zipfile
from pathlib import Path

import pytest
from browser import PATIENCE, drop_in, settled, verdict
from playwright.sync_api import Browser, Page, expect
from test_notebooks import execute

from idecode_core.image.sets import load_images
from ui.frame.samples import png


def download(page: Page, label: str) -> str:
    """Click a download button; the text of the file."""
    return download_bytes(page, label).decode()


def download_bytes(page: Page, label: str) -> bytes:
    button = page.get_by_test_id("stDownloadButton").get_by_role("button", name=label, exact=True)
    with page.expect_download() as started:
        button.click()
    return Path(started.value.path()).read_bytes()


def shown_p_value(page: Page) -> str:
    found = re.search(r"p = ([\d.e-]+)", verdict(page).inner_text())
    assert found is not None
    return found.group(1)


def test_exported_notebook_executes_and_gives_the_same_p_value(
    app_url: str, visitor: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor.goto(
        f"{app_url}/inspect?detector=fashion-rotations&source=Files&n=7&epsilon=0.1&seed=3&aggregate=mean"
    )
    drop_in(visitor, ("mine.png", png(load_images("fashion-sample").x[5])))
    expect(verdict(visitor)).to_contain_text("epsilon = 0.1")
    settled(visitor)
    with zipfile.ZipFile(io.BytesIO(download_bytes(visitor, "Notebook"))) as archive:
        archive.extractall(tmp_path)
    session = json.loads((tmp_path / "session" / "session.json").read_text())
    kept = session["settings"]
    assert (kept["n"], kept["epsilon"], kept["aggregate"], kept["seed"]) == (7, 0.1, "mean", 3)
    printed = execute((tmp_path / "inspection.ipynb").read_text(encoding="utf-8"), tmp_path)
    assert f"mine.png: p = {shown_p_value(visitor)}," in printed
    assert "As on the page" in printed


def test_downloads_follow_the_settings_and_the_report_opens_without_a_network(
    app_url: str, browser: Browser, visitor: Page, tmp_path: Path
) -> None:
    visitor.goto(f"{app_url}/inspect?detector=fashion-rotations&sample=digits-sample-3&n=4")
    expect(verdict(visitor)).to_contain_text("epsilon = 0.05")
    settled(visitor)
    visitor.locator(".st-key-epsilon").get_by_role("slider").press("ArrowRight")
    expect(verdict(visitor)).to_contain_text("epsilon = 0.055")
    settled(visitor)
    sentence = " ".join(verdict(visitor).inner_text().removeprefix("flag").split())  # without the icon's name
    kept = json.loads(download(visitor, "JSON"))
    assert f"epsilon = {kept['settings']['epsilon']:g}" in sentence
    assert f"p = {kept['rows'][0]['p_value']:.3g}" in sentence
    assert len(kept["rows"][0]["score_vector"]) == 4
    assert download(visitor, "CSV").splitlines()[0].startswith("name,verdict,p_value")
    report = tmp_path / "report.html"
    report.write_text(download(visitor, "Report"), encoding="utf-8")
    context = browser.new_context(offline=True, color_scheme="dark")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(report.as_uri())
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    expect(page.locator("p.first")).to_have_text(sentence)
    context.close()
    assert problems == []
