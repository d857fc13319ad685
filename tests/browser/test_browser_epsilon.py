"""An exact epsilon in a real browser: from a link, typed, by the click on the recommendation, and over pages."""

from browser import settled
from playwright.sync_api import Page, expect


def test_slider_entry_link_and_recommendation_show_one_epsilon(app_url: str, visitor: Page) -> None:
    visitor.goto(f"{app_url}/guarantee?epsilon=0.04619")
    entry = visitor.locator(".st-key-bar_exact input")
    slider = visitor.locator(".st-key-epsilon").get_by_role("slider")

    def shows(epsilon: str) -> None:
        expect(slider).to_have_attribute("aria-valuetext", epsilon)
        expect(entry).to_have_value(epsilon)
        expect(visitor.get_by_test_id("stMain")).to_contain_text(
            f"flagged with probability at most {epsilon};"
        )
        settled(visitor)

    shows("0.04619")
    slider.press("ArrowRight")
    shows("0.05")
    entry.fill("0.0333")
    entry.press("Enter")
    shows("0.0333")
    assert "epsilon=0.0333" in visitor.url
    use = visitor.locator(".st-key-g_use button:visible")
    use.click()
    expect(entry).not_to_have_value("0.0333")
    recommended = entry.input_value()
    assert 0 < float(recommended) < 0.0333  # to be sure of it, one asks for less
    shows(recommended)
    expect(use).to_contain_text("Back to 0.0333")
    assert f"epsilon={recommended}" in visitor.url
    visitor.get_by_role("link", name="Evaluate").click()
    expect(visitor.get_by_test_id("stMain")).to_contain_text(f"At epsilon = {recommended} it flags")
    assert f"epsilon={recommended}" in visitor.url
