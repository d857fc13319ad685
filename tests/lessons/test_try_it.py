"""The lesson on its own, from a file: it follows the finger within a frame, takes keys, fits a phone, asks for nothing."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from small import contrast

PAGE = Path(__file__).parents[2] / "lessons" / "try-it.html"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto(PAGE.as_uri())
    yield opened
    context.close()
    assert errors == []


def step(page: Page, number: int) -> Locator:
    return page.locator(f'section[data-step="{number}"]')


def number(page: Page, in_step: int, name: str) -> Locator:
    return step(page, in_step).locator(f'.number[data-name="{name}"]')


def middle(place: Locator) -> tuple[float, float]:
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


# Moves the pointer and looks at the text and the figure at the next frame, before it is painted.
MOVED = """({ element, name, by, look }) => new Promise((done) => {
  const box = element.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const event = (kind, x) => new PointerEvent(kind, { bubbles: true, pointerId: 1, isPrimary: true, clientX: x, clientY: y });
  const seen = () => look.map((part) => document.querySelector(part).outerHTML);
  element.setPointerCapture = () => {};
  element.dispatchEvent(event("pointerdown", x));
  const before = seen();
  requestAnimationFrame(() => {
    element.dispatchEvent(event("pointermove", x + by));
    requestAnimationFrame(() => { element.dispatchEvent(event("pointerup", x + by)); done([before, seen()]); });
  });
})"""


@pytest.mark.parametrize(
    ("in_step", "name", "by"), [(3, "epsilon", 80), (3, "lean", 120), (5, "n", 60), (5, "epsilon", 80)]
)
def test_text_and_figure_follow_a_drag_within_one_frame(page: Page, in_step: int, name: str, by: int) -> None:
    here = number(page, in_step, name)
    parts = [
        f'[data-step="{in_step}"] .verdict span',
        f'[data-step="{in_step}"] figure:last-child svg'
        if name != "lean"
        else f'[data-step="{in_step}"] svg',
    ]
    before, after = page.evaluate(
        MOVED, {"element": here.element_handle(), "name": name, "by": by, "look": parts}
    )
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_an_update_takes_less_than_half_a_frame(page: Page) -> None:
    """All six steps at once, with the most turns; the quickest of 40 moves, for what else runs here can only slow it."""
    number(page, 5, "n").press("End")
    took = number(page, 3, "lean").evaluate(
        """(element) => Array.from({ length: 40 }, (_, i) => {
          const began = performance.now();
          element.dispatchEvent(new KeyboardEvent("keydown", { key: i % 2 ? "PageUp" : "PageDown", bubbles: true }));
          return performance.now() - began;
        }).sort((a, b) => a - b)[0]"""
    )
    assert took < 8


def test_a_real_mouse_drags_the_number_and_the_newcomer_in_the_figure(page: Page) -> None:
    epsilon = number(page, 3, "epsilon")
    x, y = middle(epsilon)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y, steps=4)
    expect(epsilon).to_have_text("0.20")
    page.mouse.up()
    expect(step(page, 3).locator(".verdict")).to_contain_text("ε = 0.20")
    figure = step(page, 1).locator("svg")
    x, y = middle(figure)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 200, y, steps=4)
    page.mouse.up()
    expect(step(page, 1).locator(".verdict")).to_contain_text("0 of 19 friends")
    expect(step(page, 3).locator(".verdict")).to_contain_text("Flagged: p = 0.050 < ε = 0.20")


def test_every_key_is_a_step_and_none_is_lost(page: Page) -> None:
    epsilon = number(page, 3, "epsilon")
    epsilon.focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    expect(epsilon).to_have_attribute("aria-valuenow", "0.22")
    expect(number(page, 6, "epsilon")).to_have_text("0.22")  # the same number everywhere
    page.keyboard.press("End")
    expect(epsilon).to_have_attribute("aria-valuenow", epsilon.get_attribute("aria-valuemax") or "")
    page.keyboard.press("Home")
    expect(epsilon).to_have_attribute("aria-valuenow", epsilon.get_attribute("aria-valuemin") or "")
    expect(step(page, 3).get_by_text("can never flag anything with 19 friends")).to_be_visible()
    expect(step(page, 3).get_by_text("It takes 100 friends")).to_be_visible()
    page.keyboard.press("PageUp")
    expect(epsilon).to_have_attribute("aria-valuenow", "0.11")


@pytest.mark.parametrize(
    ("steps", "least"), [("", 10), ("?step=8", 6), ("?step=9", 4), ("?step=10", 4), ("?step=11", 4)]
)
def test_every_number_has_a_name_and_a_range_for_a_screen_reader(page: Page, steps: str, least: int) -> None:
    page.goto(PAGE.as_uri() + steps)
    for verdict in page.locator(".verdict").all():
        assert verdict.get_attribute("aria-live") == "polite"
    for field in page.locator("select, input[data-name]").all():
        assert field.get_attribute("aria-label")
    sliders = page.get_by_role("slider")
    assert sliders.count() >= least
    for i in range(sliders.count()):
        slider = sliders.nth(i)
        assert slider.get_attribute("aria-label")
        low, now, high = (
            float(slider.get_attribute(f"aria-value{end}") or "nan") for end in ("min", "now", "max")
        )
        assert low <= now <= high
        assert slider.get_attribute("tabindex") == "0"
    for i in range(page.locator("svg").count()):
        assert "[" not in (page.locator("svg").nth(i).get_attribute("aria-label") or "[")


def test_check_by_hand_gives_the_rank_and_marks_what_counts_when_asked(page: Page) -> None:
    page.goto(f"{PAGE.as_uri()}?lean=10.5")
    leans = [float(text) for text in step(page, 2).locator(".chips li").all_inner_texts()]
    by_hand = sum(lean >= 10.5 for lean in leans)
    assert len(leans) == 19
    expect(step(page, 1).locator(".verdict")).to_contain_text(f"{by_hand} of 19 friends")
    assert f"{by_hand}+119+1" in re.sub(r"\s", "", step(page, 2).locator("math").text_content() or "")
    weight = "(item) => getComputedStyle(item).fontWeight"
    assert step(page, 2).locator(".chips .counts").first.evaluate(weight) == "400"
    step(page, 2).get_by_role("button", name="Show which count").click()
    assert step(page, 2).locator(".chips .counts").first.evaluate(weight) == "700"


def test_the_table_of_all_numbers_adds_up_to_the_p_value_of_algorithm_1(page: Page) -> None:
    page.goto(f"{PAGE.as_uri()}?lean=20&n=3&seed=4")
    step(page, 6).get_by_text("All the numbers").click()
    rows = [re.split(r"\t", row) for row in step(page, 6).locator(".all tbody tr").all_inner_texts()]
    assert len(rows) == 20
    for row in rows:
        assert float(row[5]) == pytest.approx(sum(map(float, row[2:5])))
    larger = sum(float(row[5]) >= float(rows[0][5]) for row in rows[1:])
    assert sum(row[6].strip() == "yes" for row in rows[1:]) == larger
    expect(step(page, 6)).to_contain_text(f"({larger} + 1) / (19 + 1) = {(larger + 1) / 20:.3f}")


def test_newcomers_pile_up_to_a_flat_histogram_and_the_prediction_is_answered(page: Page) -> None:
    here = step(page, 3)
    here.get_by_label("near 1").check()
    expect(here.get_by_text("Now draw 2,000")).to_be_visible()
    expect(here.get_by_text("equally often")).to_have_count(0)  # the answer waits
    here.get_by_role("button", name="Draw 1", exact=True).click()
    expect(here).to_contain_text("Of 1 newcomer from our own hat")
    here.get_by_role("button", name="2,000").click()
    expect(here).to_contain_text("Of 2,001 newcomers from our own hat")
    expect(here.get_by_text("You said: near 1. It is: everywhere alike.")).to_be_visible()
    expect(here.get_by_text("equally often")).to_be_visible()
    heights = here.locator("svg").nth(1).locator("rect:not(.zone)").evaluate_all(
        "(bars) => bars.map((bar) => Number(bar.getAttribute('height')))"
    )  # fmt: skip
    assert len(heights) == 20
    assert max(heights) < 2 * min(heights)  # 100 each, give or take 10, in 20 places


def test_newcomers_really_fall_unless_less_motion_is_asked_for(browser: Browser) -> None:
    page = browser.new_page(reduced_motion="no-preference")
    page.goto(f"{PAGE.as_uri()}?step=3")
    page.get_by_role("button", name="Draw 100 newcomers").click()
    expect(
        page.get_by_text(re.compile(r"Of \d\d? newcomers from our own hat"))
    ).to_be_visible()  # on their way
    expect(page.get_by_text("Of 100 newcomers from our own hat")).to_be_visible()
    page.close()


def test_the_same_friends_come_back_with_their_number_and_others_with_another(page: Page) -> None:
    leans = step(page, 2).locator(".chips li")
    before = leans.all_inner_texts()
    step(page, 1).get_by_role("button", name="New friends").click()
    expect(number(page, 1, "seed")).to_have_text("10")
    assert leans.all_inner_texts() != before
    number(page, 1, "seed").press("ArrowLeft")
    assert leans.all_inner_texts() == before


def test_one_step_alone_can_be_embedded_in_a_state(page: Page) -> None:
    page.goto(f"{PAGE.as_uri()}?step=3&epsilon=0.05&lean=60")
    assert page.locator("section").count() == 1
    expect(page.get_by_text("can never flag anything with 19 friends")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollHeight") <= 1000
    page.goto(f"{PAGE.as_uri()}?step=99&epsilon=lots&lean=1e9")  # nonsense is the nearest sense
    assert page.locator("section").count() == 6
    expect(number(page, 3, "epsilon")).to_have_text("0.10")
    expect(number(page, 3, "lean")).to_have_text("60.0°")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_is_readable_in_both_schemes(browser: Browser, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 500, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(PAGE.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 500
    colours = page.evaluate(
        """() => {
          const hex = (colour) => "#" + colour.match(/\\d+/g).slice(0, 3).map((v) => Number(v).toString(16).padStart(2, "0")).join("");
          const paper = hex(getComputedStyle(document.body).backgroundColor);
          const words = [...document.querySelectorAll(".lesson :is(p, .number, .verdict, figcaption, summary, button:not(.first), td)")];
          const drawn = [...document.querySelectorAll(".lesson svg text")];
          return [paper, [...new Set([...words.map((e) => hex(getComputedStyle(e).color)), ...drawn.map((e) => hex(getComputedStyle(e).fill))])],
            [...new Set([...document.querySelectorAll(".lesson svg :is(.id, .ood, .cal:not(.less)):not(text, line)")].map((e) => hex(getComputedStyle(e).fill)))]];
        }"""
    )
    paper, words, shapes = colours
    assert paper == {"light": "#ffffff", "dark": "#10161d"}[scheme]
    assert len(words) >= 5
    assert len(shapes) >= 2
    assert min(contrast(paper, colour) for colour in words) >= 4.5
    assert min(contrast(paper, colour) for colour in shapes) >= 3
    context.close()


def test_nothing_is_asked_of_another_machine(browser: Browser) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(PAGE.as_uri())
    page.get_by_role("button", name="2,000").click()
    page.wait_for_timeout(300)
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.close()
