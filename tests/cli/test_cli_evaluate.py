"""`idecode evaluate`: two folders, stored scores, rates of subfolders."""

# ruff: noqa: F811  `files` and `run` are fixtures of another file

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from small import small_scorer
from test_commands import files, run  # noqa: F401  fixtures

from idecode_core.conformal.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.settings import CHECKPOINTS, read_settings
from idecode_core.folder.shelf import ScoreSet, write_scores
from idecode_core.image.sets import load_images


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_evaluate_breaks_no_name_however_narrow_the_terminal_is(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    status, shown, _ = run("evaluate")
    _, out, _ = run("evaluate", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    for row in rows:
        assert any(line.startswith(row["ood_set"]) for line in shown.splitlines())
        assert f"{100 * row['auroc']:.1f}" in shown
    table = shown.split("\n\n")[0]
    assert max(map(len, table.splitlines())) <= columns
    _, out, _ = run("evaluate", "--csv")
    for row, line in zip(csv.DictReader(out.splitlines()), rows, strict=True):
        assert {key: str(value or "") for key, value in line.items()} == {
            key: value if value != "0.0" else "" for key, value in row.items()
        }


def test_evaluate_says_the_rate_of_each_subfolder_the_worst_treated_first(run, tmp_path):
    clothing, digits = load_images("fashion-sample").x[:20], load_images("digits-sample").x[:10]
    for name, images in (("clothing", clothing), ("digits", digits), ("far", digits[:3])):
        (tmp_path / ("own" if name != "far" else "") / name).mkdir(parents=True)
        for i, image in enumerate(images):
            Image.fromarray(image).save(tmp_path / ("own" if name != "far" else "") / name / f"{i}.png")
    status, out, _ = run("evaluate", "--id", "own", "--ood", "far", "--groups")
    base = load_detector(CHECKPOINTS / "fashion-rotations", "cpu")
    rates = {
        name: base.detect(sorted((tmp_path / "own" / name).iterdir())).is_ood.mean()
        for name in ("clothing", "digits")
    }
    assert rates["digits"] > rates["clothing"]
    assert status == 0
    assert f"One threshold for all flags {rates['digits']:.1%} of digits (10 points)" in out
    assert out.index("  digits: ") < out.index("  clothing: ")
    assert f"  clothing: {rates['clothing']:.1%} of 20" in out
    status, _, err = run("evaluate", "--id", "far", "--ood", "own", "--groups")
    assert (status, "needs --id FOLDER with a subfolder for each group" in err) == (2, True)


def test_evaluate_compares_two_folders(run, files, tmp_path):
    for name, images in (
        ("good", load_images("fashion-sample").x[:40]),
        ("strange", load_images("photos-sample").x[:20]),
    ):
        (tmp_path / name).mkdir()
        for i, image in enumerate(images):
            Image.fromarray(image).save(tmp_path / name / f"{i:02}.png")
    (tmp_path / "strange" / "cut.jpg").write_bytes(b"\xff\xd8")
    status, out, err = run("evaluate", "--id", "good", "--ood", "strange", "--json", "--n", 2)
    assert status == 0
    assert "strange/cut.jpg: is not an image" in err
    assert "left out" in err
    (tmp_path / "strange" / "cut.jpg").unlink()
    row = json.loads(out)
    detector = load_detector(CHECKPOINTS / "fashion-rotations", "cpu")
    good, strange = (
        detector.detect(sorted((tmp_path / name).iterdir()), n=2).p_values for name in ("good", "strange")
    )
    wins = [(a > b) + 0.5 * (a == b) for a in good for b in strange]
    assert row["auroc"] == pytest.approx(np.mean(wins))
    assert row["false_detection_rate"] == pytest.approx(np.mean(good < 0.05))
    assert row["detection_rate"] == pytest.approx(np.mean(strange < 0.05))
    kept = np.sort(good)[::-1][35]  # the 36th largest of 40: 90 % of them are at least this
    assert row["tnr"] == pytest.approx(np.mean(strange < kept))
    assert (row["id_points"], row["ood_points"]) == (40, 20)
    _, table, _ = run("evaluate", "--id", "good", "--ood", "strange", "--n", 2)
    assert f"{100 * row['auroc']:.1f}" in table
    for same in ("good/", str(tmp_path / "good")):
        status, _, err = run("evaluate", "--id", "good", "--ood", "strange", "--ood", same)
        assert (status, "--id and --ood are both good" in err) == (2, True)


def test_stored_scores_are_evaluated_without_torch(tmp_path):
    calibration = np.random.default_rng(0).random((40, 20))
    save_detector(Detector("mine", small_scorer(), Calibration(calibration)), tmp_path / "mine")
    identity = read_settings(tmp_path / "mine").scorer_sha256
    for name, is_ood in (("known-test", False), ("odd-test", True)):
        vectors = np.tile(calibration[:30], 5) + (10 if is_ood else 0)
        write_scores(tmp_path / "mine", ScoreSet(name, name, is_ood, vectors.astype(np.float32)), identity)
    program = (
        "import json, sys; from idecode_core.cli.app import main\n"
        f"try: main(['evaluate', '--detector', {str(tmp_path / 'mine')!r}, '--json'])\n"
        "except SystemExit: pass\n"
        "print(*(name in sys.modules for name in ('torch', 'streamlit', 'plotly')))"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    line, loaded = finished.stdout.splitlines()
    assert loaded == "False False False"
    row = json.loads(line)
    assert (row["auroc"], row["tnr"], row["detection_rate"]) == (1.0, 1.0, 1.0)
    assert (row["id_set"], row["ood_set"], row["id_points"], row["detector"]) == (
        "known-test",
        "odd-test",
        30,
        "mine",
    )
    # the iD points are calibration points, in float32: tied with themselves, each has the p-value of its own rank
    sums = calibration[:, :5].sum(axis=1)
    p = [(1 + np.sum(sums >= own - 1e-6)) / 41 for own in sums[:30]]
    assert row["false_detection_rate"] == pytest.approx(np.mean(np.array(p) < 0.05))


def test_evaluate_wants_both_sets_or_none(run):
    status, _, err = run("evaluate", "--id", "fashion-sample")
    assert status == 2
    assert "both --id and --ood" in err
    status, _, err = run("evaluate", "--id", "fashion-sample", "--ood", "nowhere")
    assert status == 2
    assert "'nowhere' is not here" in err
    status, _, err = run("evaluate", "--id", "fashion-sample", "--ood", "svhn-test")
    assert status == 2
    assert "data fetch svhn" in err  # one that can be got
