"""In a real browser, for everybody: axe-core finds nothing serious, headings follow each other, and the page's name is in view."""

from itertools import pairwise
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import settled, visit
from playwright.sync_api import Browser, Page, expect

from ui.frame.catalogue import pages

SCREENS = [(1400, 900), (1366, 768), (1280, 720)]
LEVELS = "[...document.querySelectorAll('h1, h2, h3, h4')].filter(h => h.checkVisibility()).map(h => +h.tagName[1])"


def opened(page: Page, app_url: str, name: str) -> None:
    page.goto(f"{app_url}/{'' if name == 'home' else name}")
    expect(page.get_by_role("heading", level=1)).to_be_attached()
    settled(page)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    page.wait_for_timeout(1200)  # the frame tidies its lists after a second


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", [page.name for page in pages()])
def test_axe_finds_nothing_serious_and_headings_follow_each_other(
    app_url: str, browser: Browser, name: str, theme: Literal["light", "dark"]
) -> None:
    with visit(browser, theme=theme) as page:
        opened(page, app_url, name)
        found = Axe().run(page).response["violations"]
        levels = page.evaluate(LEVELS)
    assert [
        (one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")
    ] == []
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_the_first_screen_has_the_doors_a_photograph_that_passes_and_a_house_number_that_does_not(
    browser: Browser, app_url: str, width: int, height: int
) -> None:
    with visit(browser, width, height) as page:
        opened(page, app_url, "home")
        verdicts = page.locator(".st-key-judged_now h2")
        expect(verdicts).to_have_count(2)
        for place, words in enumerate(("Not flagged", "Flagged")):
            expect(verdicts.nth(place)).to_contain_text(words)
            box = verdicts.nth(place).bounding_box()
            assert box is not None
            assert box["y"] + box["height"] < height
        doors = page.locator(".st-key-doors").bounding_box()
        assert doors is not None
        assert doors["y"] + doors["height"] < height / 2
        for key in ("menu", "n", "epsilon", "bar_exact"):
            box = page.locator(f".st-key-{key}").first.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] < 130


def test_on_a_phone_the_verdicts_come_before_the_doors(browser: Browser, app_url: str) -> None:
    with visit(browser, width=500) as page:
        opened(page, app_url, "home")
        expect(page.locator(".st-key-judged_now h2")).to_have_count(2)
        verdicts, doors = (
            page.locator(f".st-key-{key}").bounding_box() or {} for key in ("judged_now", "doors")
        )
        assert verdicts["y"] < 450
        assert verdicts["y"] + verdicts["height"] <= doors["y"]


def test_on_a_phone_the_page_s_name_is_in_view_in_the_row_of_pages(browser: Browser, app_url: str) -> None:
    with visit(browser, width=500) as page:
        for name in ("attack_lab", "many_and_streams"):
            opened(page, app_url, name)
            box = page.locator("[data-testid=stSidebarNavLink][aria-current=page]").bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 500
