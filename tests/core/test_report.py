"""Reports: what is on the screen, as files that say the same."""

import ast
import base64
import csv
import datetime
import io
import json
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idecode_core.conformal.judge import Verdict
from idecode_core.draws import content_hash
from idecode_core.errors import SettingError
from idecode_core.image.read import read_image
from idecode_core.report import (
    Figure,
    InspectedSample,
    Inspection,
    Picture,
    Report,
    inspection_notebook,
    inspection_report,
    to_csv,
    to_html,
    to_json,
)
from idecode_core.report.content import command
from idecode_core.report.notebook import literal
from ui.frame.samples import png

PIXELS = np.random.default_rng(3).integers(0, 256, (28, 28, 3), dtype=np.uint8)


def sample(name: str = "coat.png", p_value: float = 0.25, is_ood: bool = False) -> InspectedSample:
    vector = (0.1, 1 / 3)
    verdict = Verdict(sum(vector), 0, 3, p_value, 0.05, is_ood, threshold=9.0)
    return InspectedSample(name, png(PIXELS), content_hash(PIXELS), vector, verdict, thumbnail=png(PIXELS))


def inspection(*samples: InspectedSample, **changes: object) -> Inspection:
    settings = {
        "detector": "fashion-rotations",
        "modality": "image",
        "scorer_sha256": "ab" * 32,
        "calibration_sha256": "cd" * 32,
        "k": 3,
        "n": 2,
        "epsilon": 0.05,
        "aggregate": "sum",
        "smoothed": False,
        "seed": 7,
        "false_discovery_control": False,
    }
    return Inspection(**{**settings, **changes}, samples=samples)  # type: ignore[arg-type]


class Links(HTMLParser):
    """Everything that a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")]


def test_csv_keeps_every_digit_and_gives_each_entry_of_a_score_vector_a_column() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(inspection_report(inspection(sample()))))))
    assert len(rows) == 1
    assert float(rows[0]["score_vector_2"]) == 1 / 3
    assert float(rows[0]["score"]) == 0.1 + 1 / 3
    assert rows[0]["verdict"] == "not flagged"
    assert (int(rows[0]["rank"]), int(rows[0]["k"])) == (0, 3)
    assert "picture" not in rows[0]


def test_rank_and_k_of_an_export_give_its_p_value_by_the_convention_that_it_states() -> None:
    verdict = Verdict(1.0, 168, 5000, 169 / 5001, 0.05, True, 0.5)
    judged = InspectedSample("a.png", b"", "00", (1.0,), verdict)
    report = inspection_report(inspection(judged, k=5000))
    [row] = json.loads(to_json(report))["rows"]
    assert (row["rank"], row["k"]) == (168, 5000)
    assert any("p = (rank + 1) / (k + 1)" in text for text in report.sentences)
    assert row["p_value"] == (row["rank"] + 1) / (row["k"] + 1)
    assert "168 of 5,000" in report.sentences[0]


def test_csv_survives_file_names_with_commas_quotes_and_line_breaks() -> None:
    name = 'a,"b"\nc.png'
    rows = list(csv.DictReader(io.StringIO(to_csv(inspection_report(inspection(sample(name)))))))
    assert rows[0]["name"] == name


def test_json_holds_every_setting_that_recomputes_the_batch() -> None:
    found = json.loads(to_json(inspection_report(inspection(sample(), sample("b.png", 0.01, True)))))
    expected = {"detector", "scorer_sha256", "n", "epsilon", "aggregate", "p_value_kind", "seed"}
    assert expected <= set(found["settings"])
    assert [row["verdict"] for row in found["rows"]] == ["not flagged", "flagged"]
    assert found["rows"][0]["score_vector"] == [0.1, 1 / 3]
    assert found["title"] == "1 of 2 flagged by fashion-rotations"


def test_json_writes_null_for_a_threshold_that_is_infinite() -> None:
    report = Report("t", (), {"threshold": float("inf")}, ({"score": float("nan")},))
    found = json.loads(to_json(report))
    assert found["settings"]["threshold"] is None
    assert found["rows"][0]["score"] is None


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


def test_report_says_what_false_discovery_control_promises_and_what_a_threshold_promises() -> None:
    plain = inspection_report(inspection(sample()))
    controlled = inspection_report(inspection(sample(), false_discovery_control=True))
    assert any("of in-distribution samples is flagged" in text for text in plain.sentences)
    assert any("of the flagged samples is in-distribution" in text for text in controlled.sentences)


def test_report_of_one_sample_leads_with_its_verdict_in_words() -> None:
    report = inspection_report(inspection(sample()))
    assert report.sentences[0].startswith("Not flagged: none of the 3 calibration images was this strange")


def test_reading_the_report_package_imports_neither_torch_nor_scipy_nor_plotly() -> None:
    code = "import sys, idecode_core.report; print([m for m in ('torch', 'scipy', 'plotly') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


Literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=40,
)


@given(Literals)
def test_a_value_written_as_data_reads_back_as_itself(value: object) -> None:
    assert (
        ast.literal_eval(literal(value).replace('float("inf")', "1e999").replace('float("-inf")', "-1e999"))
        == value
    )


def test_an_array_written_as_data_reads_back_as_a_list_of_its_numbers() -> None:
    array = np.array([[0.1, 1 / 3], [2.0, -7.0]])
    assert np.array_equal(ast.literal_eval(literal({"x": array}))["x"], array)


def test_what_no_reader_could_type_is_refused() -> None:
    with pytest.raises(SettingError, match="cannot hold a set"):
        literal({"a": {1}})


def test_the_same_page_gives_the_same_notebook() -> None:
    first, second = (inspection_notebook(inspection(sample()), {}) for _ in range(2))
    assert first == second


def test_a_report_has_the_variants_a_date_and_the_command_that_makes_it_again() -> None:
    variants = (Picture(png(PIXELS), "rotated by 90 <degrees>, score 0.333"),)
    report = inspection_report(inspection(sample("my <b>coat.png")), variants=variants)
    html = to_html(report)
    assert "rotated by 90 &lt;degrees&gt;, score 0.333" in html
    assert base64.b64encode(png(PIXELS)).decode() in html
    today = datetime.date.today().isoformat()
    assert f"Made on {today}" in html
    expected = "idecode detect 'my <b>coat.png' --detector fashion-rotations --n 2 --epsilon 0.05 --aggregate sum --seed 7"
    assert report.commands == (expected,)
    assert expected.replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#39;") in html
    kept = json.loads(to_json(report))
    assert kept["made"].startswith(today)
    assert kept["commands"] == [expected]


def test_a_hostile_name_in_a_command_is_one_word() -> None:
    for name in ("-rf", "a; rm -rf /", "$(id)", "it's", "a\nb"):
        words = shlex.split(command("detect", name, **{"--n": 5}))
        assert (words[:2], words[-2:], len(words)) == (["idecode", "detect"], ["--n", "5"], 5)
        assert not words[2].startswith("-")


def test_a_picture_in_a_row_reaches_neither_csv_nor_json() -> None:
    report = Report("t", (), {}, ({"picture": Picture(b"\x89PNG"), "name": "a"},))
    assert to_csv(report) == "name\na\n"
    assert json.loads(to_json(report))["rows"] == [{"name": "a"}]


def test_download_row_has_four_buttons_and_makes_no_file_before_a_click() -> None:
    from streamlit.testing.v1 import AppTest

    def page() -> None:
        from ui.frame.export import download_row

        def too_early() -> None:
            raise RuntimeError("built before a click")

        download_row("result", report=too_early, notebook=too_early)  # type: ignore[arg-type]

    app = AppTest.from_function(page).run(timeout=60)
    assert not app.exception
    assert [button.label for button in app.download_button] == ["CSV", "JSON", "Report", "Notebook"]


def test_a_stranger_s_name_in_a_notebook_means_no_more_than_its_characters():
    """Rendered as Markdown, it gives the name as text, and no picture, link or other tag."""
    from markdown_it import MarkdownIt

    from idecode_core.report.notebook import plain_line

    name = "<img src=x onerror=alert(1)> ![a](http://b) [c](d) `e` *f* __g__ $h$ &lt;"
    heading = f"# {plain_line(f'The guarantee of {name}')}"
    tokens = next(token for token in MarkdownIt().parse(heading) if token.type == "inline")
    assert {child.type for child in tokens.children} <= {"text", "text_special"}
    assert "".join(child.content for child in tokens.children) == f"The guarantee of {name}"
