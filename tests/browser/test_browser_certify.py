"""The Certify page's main path in a real browser: scores in, a threshold, a stricter one, p-values to take home."""

import csv
import re
from pathlib import Path

import numpy as np
from playwright.sync_api import Locator, Page, expect

from idecode_core import certify

NORMAL = np.random.default_rng(0).normal(size=200).round(4)
NEW = np.random.default_rng(1).normal(3, size=12).round(4)


def as_file(name: str, scores: np.ndarray) -> dict[str, object]:
    text = "score\n" + "\n".join(map(repr, scores.tolist()))
    return {"name": name, "mimeType": "text/csv", "buffer": text.encode()}


def shown(heading: Locator) -> float:
    expect(heading).to_contain_text("(k = 200)")
    words = re.search(r"above ([\d.]+) \(k = 200\)", heading.inner_text())
    assert words is not None
    return float(words[1])


def stands_for(short: float, threshold: float) -> bool:
    """Rounded to the side that flags less, and no normal point lies between."""
    return threshold <= short < threshold + 0.1 and not ((threshold < NORMAL) & (short >= NORMAL)).any()


def test_scores_become_a_threshold_and_p_values_to_take_home(app_url: str, visitor: Page) -> None:
    visitor.goto(app_url)
    visitor.get_by_test_id("stSidebar").get_by_role("link", name="Certify").click()
    visitor.get_by_role("radio", name="Your scores").click()
    visitor.locator(".st-key-certify_normal input[type=file]").set_input_files(as_file("normal.csv", NORMAL))  # type: ignore[arg-type]
    heading = visitor.get_by_role("heading", name="Flag scores above")
    first = shown(heading)
    assert stands_for(first, certify(NORMAL).threshold(0.05))
    visitor.locator(".st-key-c_sure").get_by_text("90%").click()
    expect(heading).not_to_contain_text(f"above {first:g} (")
    assert stands_for(shown(heading), certify(NORMAL).threshold(0.05, delta=0.1))
    visitor.locator(".st-key-certify_new input[type=file]").set_input_files(as_file("new.csv", NEW))  # type: ignore[arg-type]
    expect(visitor.get_by_text("of 12 new scores are flagged")).to_be_visible()
    with visitor.expect_download() as caught:
        visitor.locator(".st-key-certify_export-csv").get_by_role("button").click()
    rows = list(csv.DictReader(Path(caught.value.path()).read_text(encoding="utf-8").splitlines()))
    assert [float(row["p_value"]) for row in rows] == certify(NORMAL).p_values(NEW).tolist()
