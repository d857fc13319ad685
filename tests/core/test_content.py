"""What reports are made of: commands that can be pasted, rows without pictures."""

import json
import shlex

from idecode_core.report import (
    Picture,
    Report,
    to_csv,
    to_json,
)
from idecode_core.report.content import command


def test_a_hostile_name_in_a_command_is_one_word() -> None:
    for name in ("-rf", "a; rm -rf /", "$(id)", "it's", "a\nb"):
        words = shlex.split(command("detect", name, **{"--n": 5}))
        assert (words[:2], words[-2:], len(words)) == (["idecode", "detect"], ["--n", "5"], 5)
        assert not words[2].startswith("-")


def test_a_picture_in_a_row_reaches_neither_csv_nor_json() -> None:
    report = Report("t", (), {}, ({"picture": Picture(b"\x89PNG"), "name": "a"},))
    assert to_csv(report) == "name\na\n"
    assert json.loads(to_json(report))["rows"] == [{"name": "a"}]
