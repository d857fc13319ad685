"""In a real browser: nothing leaves the machine, the phone, both themes, the plan of a class, and a detector of one's own."""

import json
import re
from collections.abc import Iterator

import pytest
from browser import ROOT, served, settled, verdict, visit
from playwright.sync_api import Browser, Page, expect
from trust_pages import make_checkpoints

from idecode_core.files import write_json
from idecode_core.image.sets import load_images
from idecode_core.plots.style import DARK, ID, LIGHT
from ui.frame.catalogue import pages
from ui.frame.look import INK
from ui.frame.samples import png

TRACKER = "![x](http://tracker.example/x.png) <img src='http://tracker.example/y.png'>"


@pytest.fixture(scope="module")
def hostile_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app with detectors whose words try to have pictures fetched; one more is broken."""
    root = make_checkpoints(tmp_path_factory.mktemp("checkpoints"))
    for name in ("fashion-rotations", "bare"):
        path = root / name / "config.json"
        write_json(path, {**json.loads(path.read_text()), "name": f"{name} {TRACKER}", "summary": TRACKER})
        (root / name / "card.md").write_text(TRACKER)
    (root / "broken").mkdir()
    (root / "broken" / "config.json").write_text(json.dumps({"format": 1, "name": TRACKER}))
    with served(ROOT / "app.py", IDECODE_CHECKPOINTS=str(root)) as address:
        yield address


def test_no_page_asks_anything_of_another_machine(browser: Browser, hostile_url: str) -> None:
    asked: list[str] = []
    with visit(browser) as page:
        page.on("request", lambda request: asked.append(request.url))
        for entry in pages():
            page.goto(f"{hostile_url}/{'' if entry.name == 'home' else entry.name}")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            settled(page)
            icon = page.locator("link[rel='shortcut icon']").get_attribute("href") or ""
            assert not icon.startswith("https://"), entry.name
    own = (hostile_url, hostile_url.replace("http", "ws"), "data:", "blob:")
    assert len(asked) > len(pages())  # it does record
    assert [url for url in asked if not url.startswith(own)] == []


def test_on_a_phone_the_pages_are_a_row_above_the_result_and_cover_nothing(
    browser: Browser, app_url: str
) -> None:
    with visit(browser, width=500) as page:
        page.goto(f"{app_url}/inspect?detector=fashion-rotations&sample=digits-sample-3")
        expect(verdict(page)).to_be_visible()
        settled(page)
        sidebar = page.get_by_test_id(
            "stSidebar"
        )  # a slow browser comes to the style after the script has ended
        expect(sidebar).to_have_css("position", "static")
        expect(sidebar).to_have_css("transform", "none")
        link = page.get_by_role("link", name="Break it", exact=True)
        link.scroll_into_view_if_needed()
        link.click()
        expect(page.get_by_role("heading", name="Break it")).to_be_visible()


@pytest.mark.parametrize(("scheme", "theme"), [("light", LIGHT), ("dark", DARK)])
def test_figures_have_the_colours_of_the_theme(
    browser: Browser, app_url: str, scheme: str, theme: object
) -> None:
    context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{app_url}/guarantee")
    bar = page.locator(".st-key-g_uniform .bars path").first
    bar.wait_for(timeout=120_000)
    settled(page)
    colour = bar.evaluate("path => getComputedStyle(path).fill")
    wanted = theme.lines[ID]  # type: ignore[attr-defined]
    assert colour == as_css(wanted)
    page.get_by_role("link", name="How it works").first.click()
    expect(page.get_by_role("button", name="Next")).to_have_css("color", as_css(INK[scheme]))
    context.close()


def as_css(colour: str) -> str:
    return f"rgb({int(colour[1:3], 16)}, {int(colour[3:5], 16)}, {int(colour[5:], 16)})"


def test_a_row_of_the_plan_opens_its_page_in_its_state_whatever_was_set_before(
    app_url: str, visitor: Page
) -> None:
    visitor.goto(f"{app_url}/how_it_works?step=3+Threshold&how_epsilon=0.3&how_lean=5.0")
    expect(visitor.get_by_text("Not flagged: p =")).to_be_visible()
    settled(visitor)
    visitor.get_by_text("A 45-minute class from these pages").click()
    visitor.get_by_test_id("stMain").get_by_role("link", name="ε = 0.05").click()
    expect(visitor.get_by_text("can never flag anything with 19 friends")).to_be_visible()
    settled(visitor)
    visitor.get_by_test_id("stMain").get_by_role("link", name="Naive Fisher").click()
    visitor.wait_for_url(re.compile("/break_it"))
    expect(visitor.locator(".lesson select")).to_have_value(re.compile("Naive Fisher"))
    expect(visitor.locator('.lesson .number[data-name="n"]')).to_have_text("20")


def test_calibrate_ends_in_a_detector_that_is_in_use_on_every_page(app_url: str, visitor: Page) -> None:
    visitor.goto(f"{app_url}/calibrate?detector=fashion-rotations&way=Calibrate")
    photos = [
        {"name": f"{i}.png", "mimeType": "image/png", "buffer": png(x)}
        for i, x in enumerate(load_images("photos-sample").x[:22])
    ]
    visitor.locator("input[type=file]").first.set_input_files(photos)
    visitor.get_by_role("button", name="Score 22 files").click()
    expect(visitor.get_by_text("This detector is blind")).to_be_visible()
    expect(visitor.get_by_role("button", name="Use it now")).to_be_disabled()
    settled(visitor)
    visitor.get_by_role("textbox", name="Name of the new detector").fill("temples")
    visitor.get_by_role("textbox", name="What belongs?").fill("temples by daylight")
    visitor.get_by_role("textbox", name="What belongs?").press("Enter")
    visitor.get_by_role("button", name="Use it now").click()
    expect(visitor.get_by_text("is in use on every page")).to_be_visible()
    settled(visitor)
    visitor.get_by_role("link", name="Inspect", exact=True).first.click()
    expect(verdict(visitor)).to_contain_text("22 calibration images")
    expect(visitor.locator(".st-key-bar").get_by_role("button", name="temples").first).to_be_visible()


def test_clicks_on_other_pages_while_one_still_runs_never_leave_an_empty_page(
    app_url: str, visitor: Page
) -> None:
    errors: list[str] = []
    visitor.on("pageerror", lambda error: errors.append(str(error)))
    visitor.goto(app_url)
    links = visitor.get_by_test_id("stSidebar")
    for milliseconds in (0, 50, 100, 200, 300, 400, 600):
        links.get_by_role("link", name="Home").click()
        visitor.wait_for_timeout(milliseconds)
        links.get_by_role("link", name="Certify").click()
    expect(visitor.get_by_role("heading", name="Certify", level=1)).to_be_visible()
    assert errors == []
