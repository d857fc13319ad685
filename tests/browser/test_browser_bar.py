"""The bar of settings and the first screen in a real browser: always in view, every key counts, and Back goes back."""

import re

import pytest
from browser import settled, verdict, visit
from playwright.sync_api import Browser, Locator, Page, expect

FIRST_SCREENS = [(1400, 900), (1366, 768)]
CUT = """all => all.flatMap(one => [one, ...one.querySelectorAll("*")]).filter(one => one.clientWidth
  && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== "visible").map(one => one.innerText)"""


def bottom(locator: Locator) -> float:
    box = locator.first.bounding_box()
    assert box is not None
    return box["y"] + box["height"]


def open_inspect(page: Page, app_url: str, link: str = "detector=fashion-rotations") -> None:
    page.goto(f"{app_url}/inspect?{link}")
    expect(verdict(page)).to_be_visible()
    settled(page)


@pytest.mark.parametrize(("width", "height"), FIRST_SCREENS)
def test_n_and_epsilon_are_in_view_before_and_after_scrolling(
    browser: Browser, app_url: str, width: int, height: int
) -> None:
    with visit(browser, width, height) as page:
        open_inspect(page, app_url)
        for down in (0, 900):
            page.get_by_test_id("stMain").evaluate("(main, down) => main.scrollTo(0, down)", down)
            page.wait_for_timeout(300)
            for key in ("n", "epsilon", "bar_exact", "menu", "copy_link"):
                box = page.locator(f".st-key-{key}").first.bounding_box()
                assert box is not None, key
                assert box["y"] >= 0, (key, down)
                assert box["y"] + box["height"] <= 130, (key, down)
                assert box["x"] + box["width"] <= width


def test_beside_a_closed_sidebar_the_bar_fits_and_leaves_the_way_to_open_it(
    browser: Browser, app_url: str
) -> None:
    with visit(browser, 768, 768) as page:
        open_inspect(page, app_url)
        for key in ("menu", "n", "epsilon", "bar_exact", "copy_link"):
            box = page.locator(f".st-key-{key}").first.bounding_box()
            assert box is not None, key
            assert 0 <= box["x"] < box["x"] + box["width"] <= 768, key
        page.get_by_test_id("stExpandSidebarButton").click()
        expect(page.get_by_test_id("stSidebar").get_by_role("link", name="Guarantee")).to_be_in_viewport()


def test_verdict_variants_and_score_plot_are_on_the_first_screen_and_the_page_is_short(
    app_url: str, visitor: Page
) -> None:
    open_inspect(visitor, app_url)
    expect(visitor.locator("[class*=st-key-draw_chart] .plotly").first).to_be_visible()
    assert bottom(verdict(visitor)) < 900
    assert bottom(visitor.locator(".st-key-draws")) < 900
    assert bottom(visitor.locator("[class*=st-key-draw_chart]")) < 900
    assert visitor.get_by_test_id("stMain").evaluate("main => main.scrollHeight") <= 1900
    visitor.set_viewport_size({"width": 1280, "height": 720})
    visitor.wait_for_timeout(1000)
    assert bottom(visitor.locator("[class*=st-key-draw_chart]")) < 720


def test_on_a_phone_the_bar_is_one_line_and_the_verdict_comes_before_the_gallery(
    browser: Browser, app_url: str
) -> None:
    with visit(browser, width=500) as page:
        open_inspect(page, app_url, "detector=fashion-rotations&sample=digits-sample-3")
        tops = []
        for key in ("menu", "n", "bar_exact"):
            box = page.locator(f".st-key-{key}").first.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 500
            tops.append(box["y"])
        assert max(tops) - min(tops) < 60
        assert bottom(verdict(page)) < 500
        gallery = page.locator(".st-key-belonging").first.bounding_box()
        assert gallery is not None
        assert gallery["y"] > bottom(verdict(page))


@pytest.mark.parametrize("width", [500, 768])
def test_no_view_and_no_label_of_a_number_is_cut_where_there_is_little_room(
    browser: Browser, app_url: str, width: int
) -> None:
    with visit(browser, width) as page:
        for name, parts in (("evaluate", ".st-key-ev_view"), ("guarantee", "[data-testid=stMetricLabel]")):
            page.goto(f"{app_url}/{name}")
            expect(page.locator(parts).first).to_be_visible()
            settled(page)
            assert page.locator(parts).evaluate_all(CUT) == []


@pytest.mark.parametrize("pause", [80, 700])  # one answer for all presses, and one for each, in milliseconds
@pytest.mark.parametrize(("key", "before", "after"), [("epsilon", "0.05", "0.08"), ("n", "5", "11")])
def test_six_presses_of_a_key_are_six_steps(
    app_url: str, visitor: Page, key: str, before: str, after: str, pause: int
) -> None:
    open_inspect(visitor, app_url)
    slider = visitor.locator(f".st-key-{key}").get_by_role("slider")
    expect(slider).to_have_attribute("aria-valuetext", before)
    expect(visitor.locator("[class*=st-key-draw_chart] .plotly").first).to_be_visible()
    settled(visitor)  # a page that is still being drawn runs again as a whole
    slider.focus()
    for _ in range(6):
        visitor.keyboard.press("ArrowRight")
        visitor.wait_for_timeout(pause)
    visitor.wait_for_timeout(500)
    settled(visitor)
    expect(slider).to_have_attribute("aria-valuetext", after)
    expect(visitor).to_have_url(re.compile(rf"\b{key}={re.escape(after)}(&|$)"))


def test_back_goes_back_once_per_page_and_warns_of_nothing(app_url: str, visitor: Page) -> None:
    visitor.goto(app_url)
    expect(verdict(visitor)).to_be_visible()
    settled(visitor)
    visitor.get_by_test_id("stSidebar").get_by_role("link", name="Inspect").click()
    expect(visitor.locator(".st-key-draws").first).to_be_visible()
    settled(visitor)
    entries = visitor.evaluate("history.length")
    for _ in range(2):
        visitor.get_by_role("button", name="Draw after").click()
        settled(visitor)
    shown = visitor.url
    assert "draw=" in shown
    assert visitor.evaluate("history.length") == entries
    visitor.get_by_test_id("stSidebar").get_by_role("link", name="Guarantee").click()
    expect(visitor.get_by_text("What is promised").first).to_be_visible()
    settled(visitor)
    visitor.go_back()
    expect(visitor.locator(".st-key-draws").first).to_be_visible()
    settled(visitor)
    assert visitor.url == shown
    expect(visitor.get_by_text("The link asks for")).to_have_count(0)
    visitor.go_back()
    expect(visitor.get_by_role("heading", name="I have files")).to_be_visible()


def test_every_tab_of_the_browser_is_named_after_its_page(app_url: str, visitor: Page) -> None:
    for name in ("Guarantee", "Certify"):
        visitor.goto(f"{app_url}/{name.lower()}")
        expect(visitor).to_have_title(f"{name} · iDECODe Studio")
