"""The app in a real browser against bare Streamlit, side by side in one run.

    python -m benchmarks.app

1. Moving epsilon or n on the Inspect page, from the key press until verdict and main figure (n: the main figure) show it,
   against a bare page with one slider and one Plotly chart. Goal: at most 2 times.
2. First useful paint of a new server's home page against a bare page that imports torch. Goal: at most 1.5 times.
Needs Chromium and Playwright.
"""

import sys
import tempfile
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser import PATIENCE, chromium, served, settled, visit  # noqa: E402

MOVES = 15
STARTS = 3

BARE_SLIDER = """
import numpy as np
import plotly.graph_objects as go
import streamlit as st

value = st.slider("value", 0, 100, 50, key="value")
counts, edges = np.histogram(np.random.default_rng(0).normal(size=2000), 60)
figure = go.Figure(go.Bar(x=edges[:-1], y=counts))
figure.update_layout(title=f"value {value}")
st.plotly_chart(figure)
"""
BARE_TORCH = """
import streamlit as st
import torch

st.title("Ready")
"""
UNTIL_CHANGED = """
(selectors) => {
  const text = (selector) => document.querySelector(selector)?.textContent;
  const before = selectors.map(text);
  window.idecodeMove = new Promise((resolve) => {
    let start = null;
    document.addEventListener('keydown', () => { start = performance.now(); }, { once: true, capture: true });
    const look = () => {
      const done = start !== null && selectors.every((s, i) => text(s) !== undefined && text(s) !== before[i]);
      if (done) resolve(performance.now() - start); else requestAnimationFrame(look);
    };
    look();
  });
}
"""


def move_time(page: Page, slider: str, key: str, selectors: list[str]) -> float:
    """Milliseconds from the key press until the text of every selector has changed on the screen."""
    page.evaluate(UNTIL_CHANGED, selectors)
    page.locator(slider).get_by_role("slider").press(key)
    duration = float(page.evaluate("window.idecodeMove"))
    settled(page)
    return duration


WATCHED = {
    "epsilon": ["[data-testid=stMain] h2", ".st-key-aggregate_chart .scatterlayer"],
    "n": [".st-key-aggregate_chart .main-svg"],
}
"""What shows a slider's new value; the verdict of this sample is the same for most n."""


def slider_moves(browser: Browser, app: str, bare: str, slider: str) -> tuple[list[float], list[float]]:
    """Moves of both pages, in turn."""
    with visit(browser) as ours, visit(browser) as theirs:
        ours.goto(f"{app}/inspect?sample=digits-sample-3")
        theirs.goto(bare)
        for page in (ours, theirs):
            page.wait_for_selector(".js-plotly-plot", timeout=PATIENCE)
            settled(page)
        own, other = [], []
        for i in range(MOVES):
            key = "ArrowLeft" if i % 2 else "ArrowRight"
            own.append(move_time(ours, f".st-key-{slider}", key, WATCHED[slider]))
            other.append(move_time(theirs, ".st-key-value", key, [".js-plotly-plot .gtitle"]))
        return own, other


def first_paint(browser: Browser, script: Path, selector: str) -> float:
    """Milliseconds from opening the address of a new server until the selector is visible."""
    with served(script) as address, visit(browser) as page:
        page.goto(address)
        page.wait_for_selector(selector, timeout=PATIENCE)
        return float(page.evaluate("performance.now()"))


def report(what: str, own: list[float], other: list[float], goal: float) -> None:
    ratio = median(own) / median(other)
    print(
        f"{what}: {median(own):.0f} ms against {median(other):.0f} ms, ratio {ratio:.2f} (goal: at most {goal:g})"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        bare_slider, bare_torch = Path(folder) / "slider.py", Path(folder) / "with_torch.py"
        bare_slider.write_text(BARE_SLIDER)
        bare_torch.write_text(BARE_TORCH)
        with served(ROOT / "app.py") as app, served(bare_slider) as bare:
            moves = {slider: slider_moves(browser, app, bare, slider) for slider in WATCHED}
        for slider, (own, other) in moves.items():
            report(f"Moving {slider}", own, other, 2)
        own, other = [], []
        for _ in range(STARTS):
            own.append(first_paint(browser, ROOT / "app.py", "text=I have files"))
            other.append(first_paint(browser, bare_torch, "h1"))
        report("First useful paint", own, other, 1.5)


if __name__ == "__main__":
    main()
