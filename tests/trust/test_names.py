"""Names from strangers: nothing that a terminal or a spreadsheet obeys."""

import csv
import io

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idecode_core.files.names import printable
from idecode_core.report.content import Report
from idecode_core.report.html import to_csv


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\ufeff=1", "＝1+1"])
def test_a_cell_that_a_spreadsheet_would_run_is_defused(cell: str) -> None:
    text = to_csv(Report("t", (), {}, ({"file": cell, "score": -1.5, "p": (0.5, -2.0)},)))
    assert text.splitlines()[0] == "file,score,p_1,p_2"
    assert "'" + cell in text
    assert text.rstrip("\n").endswith(",-1.5,0.5,-2.0")  # numbers stay numbers


@pytest.mark.parametrize("mark", ["\r", "\n", "\r\n", "\x0b", "\u2028"])
def test_a_line_break_in_a_name_begins_no_row_that_a_spreadsheet_would_run(mark: str) -> None:
    name = f"a{mark}=cmd|' /C calc'!A0,x"
    text = to_csv(Report("t", (), {}, ({"file": name, "score": 1.5}, {"file": "b", "score": 2.5})))
    for rows in (
        list(csv.reader(io.StringIO(text, newline=""))),
        list(csv.reader(text.splitlines(keepends=True))),
    ):
        assert [len(row) for row in rows] == [2, 2, 2]
        assert rows[1] == ["a\n'=cmd|' /C calc'!A0,x", "1.5"]
    frame = pandas.read_csv(io.StringIO(text))
    assert frame["score"].tolist() == [1.5, 2.5]
    assert not any(line.startswith("=") for cell in frame["file"] for line in cell.splitlines())
    assert not any(line.lstrip('"').startswith("=") for line in text.splitlines())


@given(st.text())
def test_a_printable_name_has_nothing_that_a_terminal_obeys(name: str) -> None:
    shown = printable(name)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u200b\u2028" for c in shown)
    assert printable(shown) == shown
    shown.encode()  # also where the name was not valid text


def test_ordinary_names_of_all_languages_stay_as_they_are() -> None:
    for name in ("photo 1.png", "café.jpg", "照片.png", "фото.png", "x-[1] (2)_é.wav"):
        assert printable(name) == name
