"""`idecode detect`: statuses, tables for people, JSON and CSV for programs."""

# ruff: noqa: F811  `files` and others are fixtures of another file

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_commands import files, run  # noqa: F401  fixtures
from test_score import small_blocks, world  # noqa: F401  fixtures

from idecode_core import modality
from idecode_core.cli import detect as detecting
from idecode_core.cli.app import main
from idecode_core.folder.detector import load_detector, scorer_hash
from idecode_core.folder.settings import CHECKPOINTS


def test_detect_prints_its_lines_as_they_are_ready(world, monkeypatch, capsys):
    """When the fifth file is read, the first four have been answered."""
    monkeypatch.chdir(world)
    monkeypatch.setattr(detecting, "FILES_PER_BATCH", 2)
    pictures = modality.modality_named("image")
    seen: list[int] = []
    answered = 0

    def watched(path: Path, name: str) -> object:
        nonlocal answered
        answered += len(capsys.readouterr().out.splitlines())
        seen.append(answered)
        return pictures.read(path, name)

    monkeypatch.setattr(modality, "modality_named", lambda _: replace(pictures, read=watched))
    files = sorted(str(path) for path in (world / "pictures" / "deep er").glob("*.png"))[:5]
    with pytest.raises(SystemExit):
        main(["detect", *files, "-d", "tiny", "--n", "3", "--epsilon", "0.2", "--json"])
    assert seen == [0, 0, 2, 2, 4]


def test_a_street_is_flagged_and_a_sneaker_is_not(run, files):
    status, out, err = run("detect", files["street.jpg"], files["sneaker0.png"])
    street, sneaker = (
        next(line for line in out.splitlines() if name in line) for name in ("street", "sneaker")
    )
    assert "out of distribution" in street
    assert "not flagged" in sneaker
    assert "1 of 2 flagged" in out
    assert (status, err) == (1, "")


def test_exit_status_is_0_when_nothing_is_flagged(run, files):
    assert run("detect", files["sneaker0.png"])[0] == 0


def test_json_has_one_line_per_file_with_what_the_library_says(run, files):
    names = ["street.jpg", "sneaker0.png", "sneaker1.png"]
    status, out, err = run(
        "detect", *names, "--json", "--n", 7, "--epsilon", 0.1, "--seed", 3, "--aggregate", "max"
    )
    lines = [json.loads(line) for line in out.splitlines()]
    detector = load_detector(CHECKPOINTS / "fashion-rotations", "cpu")
    found = detector.detect(names, n=7, epsilon=0.1, seed=3, aggregate="max")
    assert [line["file"] for line in lines] == names
    for i, line in enumerate(lines):
        np.testing.assert_allclose(line["score_vector"], found.score_vectors[i], rtol=1e-5)
        assert line["p_value"] == pytest.approx(found.p_values[i])
        assert line["is_ood"] == bool(found.is_ood[i])
        assert line["score"] == pytest.approx(max(line["score_vector"]))
        assert line["transforms"] == detector.describe(found, i)
        at_least = np.sum(detector.calibration.score_vectors[:, :7].max(axis=1) >= line["score"])
        assert (line["rank"], line["k"]) == (at_least, detector.calibration.k)
        assert line["is_ood"] == (line["score"] > line["threshold"])
        assert line["scorer_sha256"] == scorer_hash(detector.scorer)
        assert (line["n"], line["epsilon"], line["seed"], line["detector"]) == (
            7,
            0.1,
            3,
            "fashion-rotations",
        )
    assert (status, err) == (1, "")


def test_csv_has_the_numbers_of_json_and_no_formulas(run, files, tmp_path):
    files["sneaker1.png"].rename(tmp_path / "=1+1.png")
    _, out, _ = run("detect", "street.jpg", "=1+1.png", "--csv")
    rows = list(csv.DictReader(out.splitlines()))
    _, out, _ = run("detect", "street.jpg", "=1+1.png", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [row["file"] for row in rows] == ["street.jpg", "'=1+1.png"]
    for row, line in zip(rows, lines, strict=True):
        assert (float(row["p_value"]), int(row["rank"])) == (line["p_value"], line["rank"])
        assert row["is_ood"] == str(line["is_ood"])


def test_the_same_answer_twice_and_another_one_for_another_seed(run, files):
    first, again, other = (run("detect", "sneaker0.png", "--json", "--seed", seed)[1] for seed in (0, 0, 1))
    assert first == again != other


def test_an_epsilon_that_can_flag_nothing_is_told_once(run, files):
    status, out, err = run("detect", "street.jpg", "--epsilon", 1e-6)
    assert status == 0
    assert err.count("can never flag anything") == 1
    assert "0 of 1 flagged" in out
