"""The Attack lab in a real browser: a right picture becomes a wrong one, both p-values are there, a slow attack can be stopped."""

import re

from browser import settled
from playwright.sync_api import Page, expect

P_VALUE = re.compile(r"p = 0\.\d+, (not )?flagged")


def test_a_correctly_classified_picture_becomes_misclassified_and_both_p_values_are_shown(
    app_url: str, visitor: Page
) -> None:
    visitor.goto(
        f"{app_url}/attack_lab?detector=cifar10-rotations&picture=cifar10-sample-36&pgd-detector_strength=0.2"
    )
    heading = visitor.get_by_test_id("stMain").locator("h2").first
    expect(heading).to_contain_text(re.compile("Fooled and .*the victim says .* in place of cat"))
    pictures = visitor.locator(".st-key-attacked")
    for name in ("clean", "attacked", "difference"):
        expect(pictures.get_by_alt_text(re.compile(f", {name}$"))).to_be_visible()
    clean = pictures.get_by_text(re.compile(r"^Clean: cat \("))
    attacked = pictures.get_by_text(re.compile(r"^Attacked: (?!cat)\w+ \("))
    for caption in (clean, attacked):
        expect(caption).to_contain_text(P_VALUE)
    settled(visitor)
    visitor.get_by_role(
        "radio", name="PGD on the detector"
    ).click()  # the slowest, at a strength that the gallery has not
    visitor.get_by_role("button", name="Run PGD on the detector").click()
    visitor.get_by_role("button", name="Stop attacking").click()
    expect(visitor.get_by_role("button", name="Run PGD on the detector")).to_be_visible()
    expect(visitor).to_have_url(re.compile(r"attack=PGD"))
    visitor.get_by_role("radio", name="FGSM").click()
    expect(heading).to_contain_text("Fooled and")
