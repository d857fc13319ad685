"""The HTML report: one file, hostile names as text, the verdict in its colour."""

import base64
import re
from html.parser import HTMLParser

import numpy as np
import plotly.graph_objects as go
from test_report import PIXELS, inspection, sample

from idecode_core.image.read import read_image
from idecode_core.report import (
    Figure,
    Report,
    inspection_report,
    to_html,
)


class Links(HTMLParser):
    """Everything that a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")]


def test_html_needs_no_other_file_and_holds_plotly_once() -> None:
    figure = Figure(go.Figure(go.Scatter(x=[1, 2], y=[3, 4])), "Look at the slope.")
    html = to_html(inspection_report(inspection(sample()), figures=(figure, figure)))
    links = Links()
    links.feed(html)
    assert links.found
    assert all(link.startswith("data:image/") for link in links.found)
    assert html.count("Look at the slope.") == 2
    assert html.count("plotly.js v") == 1
    assert "prefers-color-scheme: dark" in html


def test_html_without_figures_is_small() -> None:
    assert len(to_html(inspection_report(inspection(sample())))) < 50_000


def test_html_has_the_verdict_in_its_colour() -> None:
    words = ("flagged", "not flagged", "else")
    page = to_html(Report("t", (), {}, tuple({"verdict": word} for word in words)))
    assert '<td class="OOD">flagged</td>' in page
    assert '<td class="iD">not flagged</td>' in page
    assert "<td>else</td>" in page


def test_html_shows_hostile_names_as_text() -> None:
    name = '<script>alert(1)</script>"><img src=x onerror=alert(2)>.png'
    hostile_figure = Figure(
        go.Figure(go.Scatter(x=[1], y=[1], name="</script><script>alert(3)</script>")), name
    )
    report = inspection_report(inspection(sample(name), detector=name), figures=(hostile_figure,))
    html = to_html(report)
    assert "alert(1)</script>" not in html
    assert "<img src=x" not in html
    assert "</script><script>alert(3)" not in html


def test_the_picture_in_the_html_is_the_sample() -> None:
    html = to_html(inspection_report(inspection(sample())))
    match = re.search(r"data:image/png;base64,([A-Za-z0-9+/=]+)", html)
    assert match is not None
    assert np.array_equal(read_image(base64.b64decode(match.group(1))), PIXELS)
