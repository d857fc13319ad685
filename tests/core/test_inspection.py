"""Reports of Inspect as CSV and JSON: every digit, every setting."""

import base64
import csv
import datetime
import io
import json

from test_report import PIXELS, inspection, sample

from idecode_core.conformal.judge import Verdict
from idecode_core.report import (
    InspectedSample,
    Picture,
    Report,
    inspection_report,
    to_csv,
    to_html,
    to_json,
)
from ui.frame.samples import png


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


def test_report_says_what_false_discovery_control_promises_and_what_a_threshold_promises() -> None:
    plain = inspection_report(inspection(sample()))
    controlled = inspection_report(inspection(sample(), false_discovery_control=True))
    assert any("of in-distribution samples is flagged" in text for text in plain.sentences)
    assert any("of the flagged samples is in-distribution" in text for text in controlled.sentences)


def test_report_of_one_sample_leads_with_its_verdict_in_words() -> None:
    report = inspection_report(inspection(sample()))
    assert report.sentences[0].startswith("Not flagged: none of the 3 calibration images was this strange")


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
