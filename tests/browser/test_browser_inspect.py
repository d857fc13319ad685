"""Inspect in a real browser: the keyboard, the link, names for screen readers, stopping a batch."""

import re

from browser import drop_in, settled, verdict
from playwright.sync_api import Page, expect
from trust_pages import zipped

from idecode_core.image.sets import load_images
from ui.frame.samples import png


def files(count: int) -> bytes:
    """A zip of clothes and a few digits."""
    clothes, digits = load_images("fashion-sample").x, load_images("digits-sample").x
    inside = {f"clothes-{i}.png": png(clothes[i]) for i in range(count - 3)}
    return zipped({**inside, **{f"digit-{i}.png": png(digits[i]) for i in range(3)}})


def test_arrow_keys_walk_through_draws_and_the_link_follows_but_not_while_a_slider_has_them(
    app_url: str, visitor: Page
) -> None:
    visitor.goto(f"{app_url}/inspect?detector=fashion-rotations&sample=digits-sample-3&draw=2")
    expect(verdict(visitor)).to_be_visible()
    settled(visitor)
    expect(visitor.get_by_role("radio", name="bird", exact=False).first).to_be_visible()
    expect(visitor.get_by_role("button", name="Draw after")).to_be_enabled()  # its key works from then on
    visitor.keyboard.press("ArrowRight")
    expect(visitor.get_by_text("Draw 3 of 5")).to_be_visible()
    expect(visitor).to_have_url(re.compile(r"draw=3"))
    settled(visitor)
    visitor.locator(".st-key-epsilon").get_by_role("slider").press("ArrowRight")
    expect(verdict(visitor)).to_contain_text("epsilon = 0.055")
    settled(visitor)
    expect(visitor.get_by_text("Draw 3 of 5")).to_be_visible()


def test_a_batch_can_be_stopped_goes_on_and_the_keyboard_and_the_link_walk_through_its_rows(
    app_url: str, visitor: Page
) -> None:
    visitor.goto(f"{app_url}/inspect?detector=fashion-rotations&source=Files")
    expect(visitor.locator("input[type=file]").first).to_be_attached()
    drop_in(visitor, ("many.zip", files(40)))
    visitor.get_by_role("button", name="Stop scoring").click()
    expect(visitor.get_by_text(re.compile(r"Stopped: \d+ of 40 files were scored"))).to_be_visible()
    visitor.get_by_role("button", name=re.compile("Score the other")).click()
    expect(visitor.get_by_text("Row 1 of 40")).to_be_visible()
    settled(visitor)
    before = visitor.url
    visitor.keyboard.press("Shift+ArrowDown")
    expect(visitor.get_by_text("Row 2 of 40")).to_be_visible()
    expect(visitor).not_to_have_url(before)
    expect(visitor).to_have_url(re.compile("sample=file-"))
    # As pictures: each is whole within its button, large enough to see, with its p-value below.
    choices = visitor.locator(".st-key-batch_pictures button")
    expect(choices).to_have_count(40)
    expect(choices.first.locator("img")).to_have_css("object-fit", "contain")  # small ones are enlarged
    button, picture, p_value = (
        one.bounding_box() or {}
        for one in (choices.first, choices.first.locator("img"), choices.first.get_by_text(re.compile("^0.")))
    )
    assert picture["height"] >= 64
    assert button["y"] < picture["y"]
    assert picture["y"] + picture["height"] <= p_value["y"]
    assert p_value["y"] + p_value["height"] <= button["y"] + button["height"]
