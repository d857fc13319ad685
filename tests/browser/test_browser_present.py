"""The presenter view in a real browser: keys lead through the plan over all its pages, and the figures are within the screen."""

import re
from urllib.parse import urlencode

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
    visitor.wait_for_url(re.compile("plan=6"))  # a link within one page is in the address too
    visitor.locator('.lesson .number[data-name="n"]').focus()
    visitor.keyboard.press("ArrowRight")  # belongs to the number that has the focus
    expect(visitor.locator('.lesson .number[data-name="n"]')).to_have_text("6")
    visitor.keyboard.press("PageDown")  # a remote control goes on all the same
    at_row(visitor, 8)
    expect(visitor.locator(".lesson h2")).to_have_text("From arrow to shoe to your photograph")
    visitor.keyboard.press("PageDown")
    visitor.wait_for_url(re.compile("/break_it"))
    at_row(visitor, 9)
    expect(visitor.locator(".lesson").get_by_text("Vote first: how many")).to_be_visible()
    expect(visitor.get_by_test_id("stSidebar")).to_be_hidden()
    visitor.mouse.click(5, 300)
    visitor.keyboard.press("ArrowLeft")
    visitor.wait_for_url(re.compile("/how_it_works"))
    at_row(visitor, 8)
    visitor.reload()
    at_row(visitor, 8)
    visitor.goto(f"{app_url}/inspect?present=true&plan={len(PLAN) - 1}")
    at_row(visitor, len(PLAN))
    visitor.get_by_role("button", name="End").click()
    expect(visitor.get_by_test_id("stSidebar")).to_be_visible()


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1400, 900)])
def test_the_first_figure_of_every_row_and_of_the_attack_lab_is_within_the_screen(
    browser: Browser, app_url: str, width: int, height: int
) -> None:
    """On the teaching pages all figures are; on Inspect, Guarantee and the Attack lab those that the class talks about."""
    figures = {
        "inspect": ".st-key-verdict_first .js-plotly-plot",
        "guarantee": ".st-key-g_rate .js-plotly-plot",
        "attack_lab": ".st-key-attacked",
    }
    rows = [
        (number + 1, row.page, urlencode({**row.state, "plan": number})) for number, row in enumerate(PLAN)
    ]
    with visit(browser, width=width, height=height) as page:
        for row, name, state in [*rows, (1, "attack_lab", "plan=0")]:
            if name == "break_it":
                state += "&break_predict=false"
            page.goto(f"{app_url}/{name}?present=true&{state.replace('source=Files', 'source=Gallery')}")
            at_row(page, row)
            figure = page.locator(figures.get(name, ".lesson svg"))
            expect(figure.first).to_be_visible()
            bottoms = figure.evaluate_all(
                "(all) => all.map((figure) => figure.getBoundingClientRect().bottom)"
            )
            top = page.get_by_role("navigation", name="Plan of the class").evaluate(
                "(nav) => nav.getBoundingClientRect().top"
            )
            assert max(bottoms) <= top, (state, bottoms, top)
            assert page.evaluate("document.documentElement.scrollWidth") == width
