"""A newcomer's path in a real browser."""

import re

import numpy as np
import pytest
from browser import ROOT, drop_in, served, settled, verdict, visit
from playwright.sync_api import Browser, Page, expect

from idecode_core import load_detector
from idecode_core.image.sets import load_images
from trial.visitors import try_visitors
from ui.frame.samples import png


@pytest.fixture(scope="module")
def borderline() -> bytes:
    """A picture that is flagged at epsilon = 0.05 and no longer a few steps below."""
    detector = load_detector(ROOT / "checkpoints" / "fashion-rotations")
    pictures = load_images("fashion-sample").x[:400]
    p_values = detector.detect(pictures, n=5, epsilon=0.05).p_values
    return png(pictures[int(np.argmin(np.abs(p_values - 0.043)))])


def move_epsilon(page: Page, key: str) -> None:
    page.locator(".st-key-epsilon").get_by_role("slider").press(key)


def test_upload_verdict_epsilon_until_it_flips_and_the_link_shows_the_same(
    browser: Browser, app_url: str, visitor: Page, borderline: bytes
) -> None:
    visitor.goto(f"{app_url}?detector=fashion-rotations")
    visitor.get_by_role("link", name="Inspect", exact=True).first.click()
    visitor.get_by_test_id("stMain").get_by_text("Files", exact=True).click()
    drop_in(visitor, ("mine.png", borderline))
    expect(visitor.locator(".st-key-picture").get_by_text("mine.png")).to_be_visible()
    expect(verdict(visitor)).to_contain_text("Flagged: only")
    expect(verdict(visitor)).to_contain_text("epsilon = 0.05")
    for _ in range(12):
        before = verdict(visitor).inner_text()
        move_epsilon(visitor, "ArrowLeft")
        expect(verdict(visitor)).not_to_have_text(before)
        if "Not flagged" in verdict(visitor).inner_text():
            break
    expect(verdict(visitor)).to_contain_text("Not flagged")
    settled(visitor)
    sentence, link = verdict(visitor).inner_text(), visitor.url
    assert "epsilon=0.0" in link
    assert "sample=file-" in link
    with visit(browser) as other:
        other.goto(link)
        expect(other.get_by_text("a link cannot carry")).to_be_visible()
        drop_in(other, ("the same under another name.png", borderline))
        expect(verdict(other)).to_have_text(sentence)


def test_a_link_to_a_bundled_picture_reproduces_everything(
    browser: Browser, app_url: str, visitor: Page
) -> None:
    visitor.goto(
        f"{app_url}/inspect?detector=fashion-rotations&sample=digits-sample-3&n=9&epsilon=0.1&seed=2&draw=4"
    )
    expect(visitor.get_by_text("Draw 4 scores")).to_be_visible()
    settled(visitor)
    sentence, link = verdict(visitor).inner_text(), visitor.url
    with visit(browser) as other:
        other.goto(link)
        expect(verdict(other)).to_have_text(sentence)
        expect(other.get_by_text("Draw 4 scores")).to_be_visible()


def test_settings_survive_changing_pages(app_url: str, visitor: Page) -> None:
    visitor.goto(f"{app_url}/?epsilon=0.1&n=9")
    expect(verdict(visitor)).to_contain_text("epsilon = 0.1")
    visitor.get_by_role("link", name="Inspect", exact=True).first.click()
    visitor.wait_for_url(re.compile("/inspect"))
    expect(visitor.get_by_role("heading", name="Inspect")).to_be_visible()
    expect(verdict(visitor)).to_contain_text("epsilon = 0.1")
    settled(visitor)
    assert "epsilon=0.1" in visitor.url
    assert "n=9" in visitor.url


def test_gallery_and_chart_choose_for_each_other(app_url: str, visitor: Page) -> None:
    visitor.goto(f"{app_url}/inspect?detector=fashion-rotations&sample=digits-sample-3&n=6&draw=1")
    expect(visitor.get_by_text("Draw 1 scores")).to_be_visible()
    gallery = visitor.locator(".st-key-draws button")
    expect(gallery).to_have_count(6)
    gallery.nth(4).click()
    expect(visitor.get_by_text("Draw 5 scores")).to_be_visible()
    settled(visitor)
    marks = visitor.locator("[class*=st-key-draw_chart] .scatterlayer .points path.point")
    expect(marks).to_have_count(6)
    marks.nth(2).click(force=True)
    expect(visitor.get_by_text("Draw 3 scores")).to_be_visible()
    expect(gallery.nth(2)).to_have_attribute("aria-checked", "true")
    assert "draw=3" in visitor.url


def test_moving_epsilon_draws_again_only_what_shows_epsilon(app_url: str, visitor: Page) -> None:
    visitor.goto(f"{app_url}/inspect?detector=fashion-rotations&sample=digits-sample-3")
    expect(verdict(visitor)).to_contain_text("epsilon = 0.05")
    settled(visitor)
    parts = {
        "aggregate": ".st-key-aggregate_chart .main-svg",
        "growth": ".st-key-growth_chart .main-svg",
        "draws": "[class*=st-key-draw_chart] .main-svg",
        "picture": ".st-key-picture img",
        "download": ".st-key-inspection-csv button",
    }
    for part in parts.values():
        visitor.locator(part).first.evaluate("element => { element.dataset.seen = 'yes' }")
    move_epsilon(visitor, "ArrowRight")
    expect(verdict(visitor)).to_contain_text("epsilon = 0.055")
    settled(visitor)
    kept = {
        name
        for name, part in parts.items()
        if visitor.locator(part).first.get_attribute("data-seen") == "yes"
    }
    assert kept == {"draws", "picture", "download"}


def test_redrawing_judges_the_input_with_other_transforms(app_url: str, visitor: Page) -> None:
    visitor.goto(f"{app_url}/inspect?detector=fashion-rotations&sample=fashion-sample-1")
    expect(verdict(visitor)).to_contain_text("epsilon = 0.05")
    settled(visitor)
    before = verdict(visitor).inner_text()
    visitor.get_by_role("tab", name="More draws, other draws").click()
    visitor.get_by_role("button", name="Re-draw the transforms").click()
    expect(verdict(visitor)).not_to_have_text(before)
    settled(visitor)
    assert "seed=1" in visitor.url


def test_a_page_without_settings_opened_first_on_a_new_server_is_part_of_the_app(visitor: Page) -> None:
    with served(ROOT / "app.py") as address:
        visitor.goto(f"{address}/how_it_works")
        expect(visitor.get_by_role("link", name="Many and streams", exact=True)).to_be_visible()
        expect(visitor.get_by_role("heading", name="Rank among friends")).to_be_visible()


def test_two_visitors_do_not_see_each_others_files(browser: Browser, app_url: str, borderline: bytes) -> None:
    with visit(browser) as first, visit(browser) as second:
        for page in (first, second):
            page.goto(f"{app_url}/inspect?detector=fashion-rotations&source=Files")
        drop_in(
            first,
            ("secret-of-the-first.png", borderline),
            ("another.png", png(load_images("digits-sample").x[0])),
        )
        expect(first.get_by_text("of 2 files flagged")).to_be_visible()
        expect(second.get_by_text("Choose a picture at the left")).to_be_visible()
        drop_in(second, ("mine.png", png(load_images("digits-sample").x[1])))
        expect(verdict(second)).to_be_visible()
        settled(second)
        assert "secret-of-the-first" not in second.content()
        second.reload()
        expect(second.get_by_text("a link cannot carry")).to_be_visible()
        assert "secret-of-the-first" not in second.content()


def test_bad_files_show_sentences_and_never_a_traceback(
    app_url: str, visitor: Page, borderline: bytes
) -> None:
    visitor.goto(f"{app_url}/inspect?detector=fashion-rotations&source=Files")
    drop_in(visitor, ("text.png", b"not a picture"), ("empty.png", b""), ("good.png", borderline))
    expect(verdict(visitor)).to_be_visible()
    expect(visitor.get_by_text("2 files were left out")).to_be_visible()
    assert visitor.get_by_test_id("stException").count() == 0


def test_two_sessions_at_once_see_their_own_verdicts_and_nothing_leaves(
    browser: Browser, app_url: str
) -> None:
    """The short version of the trial's twenty sessions."""
    outcomes = list(try_visitors(browser, app_url, 2, seed=1))
    assert [problem for outcome in outcomes for problem in outcome.problems] == []
    assert [outcome.cases for outcome in outcomes] == [2, 2]
