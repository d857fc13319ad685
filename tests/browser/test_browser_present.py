"""The presenter view in a real browser: keys lead through the plan over all its pages, and the figures are within the screen."""

import re

import pytest
from browser import settled, visit
from playwright.sync_api import Browser, Page, expect

from lessons.plan import PLAN


def strip(page: Page) -> str:
    place = page.get_by_role("navigation", name="Plan of the class")
    expect(place).to_be_visible()
    return place.inner_text()


def at_row(page: Page, row: int) -> None:
    expect(page.get_by_role("navigation", name="Plan of the class")).to_contain_text(
        f"{row} of {len(PLAN)} ·"
    )
    settled(page)


def test_keys_go_on_and_back_through_the_plan_and_the_view_survives(app_url: str, visitor: Page) -> None:
    visitor.goto(f"{app_url}/how_it_works?present=true&plan=5")
    at_row(visitor, 6)
    visitor.keyboard.press("PageDown")
    at_row(visitor, 7)
    expect(visitor.locator(".lesson h2")).to_have_text("Algorithm 1")
    visitor.locator('.lesson .number[data-name="n"]').focus()
    visitor.keyboard.press("ArrowRight")  # belongs to the number that has the focus
    expect(visitor.locator('.lesson .number[data-name="n"]')).to_have_text("6")
    visitor.keyboard.press("PageDown")  # a remote control goes on all the same
    visitor.wait_for_url(re.compile("/break_it"))
    at_row(visitor, 8)
    expect(visitor.get_by_text("Before you look: One draw shared")).to_be_visible()
    expect(visitor.get_by_test_id("stSidebar")).to_be_hidden()
    visitor.mouse.click(5, 300)
    visitor.keyboard.press("ArrowLeft")
    visitor.wait_for_url(re.compile("/how_it_works"))
    at_row(visitor, 7)
    visitor.reload()
    at_row(visitor, 7)
    visitor.goto(f"{app_url}/inspect?present=true&plan=12")
    at_row(visitor, 13)
    visitor.get_by_role("button", name="End").click()
    expect(visitor.get_by_test_id("stSidebar")).to_be_visible()


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1400, 900)])
def test_every_figure_of_a_lesson_is_within_the_screen(
    browser: Browser, app_url: str, width: int, height: int
) -> None:
    with visit(browser, width=width, height=height) as page:
        for row, minutes in enumerate(PLAN):
            if minutes.page != "how_it_works":
                continue
            page.goto(
                f"{app_url}/how_it_works?present=true&plan={row}&step={minutes.state['step'].replace(' ', '+')}"
            )
            at_row(page, row + 1)
            expect(page.locator(".lesson svg").first).to_be_visible()
            bottoms = page.locator(".lesson svg").evaluate_all(
                "(all) => all.map((svg) => svg.getBoundingClientRect().bottom)"
            )
            top = page.get_by_role("navigation", name="Plan of the class").evaluate(
                "(nav) => nav.getBoundingClientRect().top"
            )
            assert max(bottoms) <= top, (minutes.label, bottoms, top)
            assert page.evaluate("document.documentElement.scrollWidth") == width
