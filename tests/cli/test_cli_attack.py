"""`idecode paper attack`: floats and a table are written."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small import SIZE, random_images
from test_classic import classifier
from typer.testing import CliRunner

from idecode_core.attacks.classic import attack_files
from idecode_core.cli.app import app
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.folder.detector import save_detector


def test_the_command_writes_floats_and_a_table(tmp_path: Path) -> None:
    for i, picture in enumerate(random_images(3, 24)):
        Image.fromarray(picture).save(tmp_path / f"{i}, really.png")
    scorer = replace(classifier(), classes=("=a", "=b", "=c", "=d", "=e"))  # formulas, in a spreadsheet
    save_detector(Detector.calibrate("small", scorer, random_images(10), n_max=2), tmp_path / "victim")
    wish = [
        "attack",
        str(tmp_path),
        "--victim",
        str(tmp_path / "victim"),
        "--strength",
        "0.3",
        "--out",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(app, wish)
    assert done.exit_code == 0, done.output
    with np.load(tmp_path / "out" / "attacked.npz") as stored:
        assert stored["attacked"].shape == (3, 3, SIZE, SIZE)
        assert stored["attacked"].dtype == np.float32
        assert np.abs(stored["attacked"] - stored["clean"]).max() == pytest.approx(0.3, abs=1e-5)
    with (tmp_path / "out" / "attacked.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [Path(row["file"]).name for row in rows] == ["0, really.png", "1, really.png", "2, really.png"]
    assert all((row["before"] != row["after"]) == (row["fooled"] == "True") for row in rows)
    assert all(row[said].startswith("'=") for row in rows for said in ("before", "after"))
    assert isinstance(CliRunner().invoke(app, wish).exception, SettingError), "the folder is there already"
    pictures = [tmp_path / f"{i}, really.png" for i in range(3)]
    called = attack_files(pictures, tmp_path / "again", victim=str(tmp_path / "victim"), strength=0.3)
    for row, record in zip(rows, called.records(), strict=True):
        assert (row["fooled"], float(row["l2"])) == (str(record["fooled"]), pytest.approx(record["l2"]))
    assert (tmp_path / "again" / "attacked.csv").read_text() == (
        tmp_path / "out" / "attacked.csv"
    ).read_text()
