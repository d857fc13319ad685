"""The command line: exit statuses, tables for people, JSON for programs, one sentence per error."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image
from sklearn.datasets import load_sample_image
from small import random_images, small_scorer
from test_audio_scorer import make_scorer, sounds
from test_experiments import tiny_scorer, write_detector

from idecode_core.cli.app import main
from idecode_core.conformal.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.folder.detector import load_detector, save_detector, scorer_hash
from idecode_core.folder.place import new_place
from idecode_core.folder.settings import CHECKPOINTS, read_settings
from idecode_core.folder.shelf import ScoreSet, read_scores, write_scores
from idecode_core.image.sets import load_images
from idecode_core.models import ModelConfig
from idecode_core.training.recipes import RECIPES, get_recipe
from idecode_core.transforms import Projective, Rotations, SmallAffine

SNEAKER = 7  # class number


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command in an empty directory: (exit status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IDECODE_DATA", raising=False)
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path))  # where new detectors go
    monkeypatch.setenv("COLUMNS", "200")

    def command(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return command


@pytest.fixture
def files(tmp_path) -> dict[str, Path]:
    """A photograph of a street with a temple, Fashion-MNIST sneakers, and files that are no images."""
    Image.fromarray(load_sample_image("china.jpg")).save(tmp_path / "street.jpg")
    clothing = load_images("fashion-sample")
    for i, index in enumerate(np.flatnonzero(clothing.y == SNEAKER)[:3]):
        Image.fromarray(clothing.x[index]).save(tmp_path / f"sneaker{i}.png")
    (tmp_path / "text.png").write_text("no picture")
    return {path.name: path for path in tmp_path.iterdir()}


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


def test_the_card_of_a_merged_detector_of_own_data_names_a_command_that_works(run, files, tmp_path):
    from idecode_core.report.card import write_card

    save_detector(Detector.calibrate("mine", small_scorer(), random_images(30), n_max=2), tmp_path / "mine")
    write_card(tmp_path / "mine")
    text = (tmp_path / "mine" / "card.md").read_text()
    assert "score-sets" not in text
    command = text.partition("Test it with `python -m idecode_core ")[2].partition("`")[0]
    (tmp_path / "good").mkdir()
    for i, image in enumerate(random_images(4, seed=3)):
        Image.fromarray(image).save(tmp_path / "good" / f"{i}.png")
    assert run(*command.replace("FOLDER", "good", 1).replace("FOLDER", "textures-sample").split())[0] == 0


def test_reproduce_finds_the_projects_detectors_as_detect_does(run, tmp_path):
    """IDECODE_CHECKPOINTS names a folder without stored scores."""
    status, _, err = run("reproduce", "fashion")
    assert status == 0, err
    assert "fashion" in (tmp_path / "RESULTS.md").read_text()


def test_the_same_answer_twice_and_another_one_for_another_seed(run, files):
    first, again, other = (run("detect", "sneaker0.png", "--json", "--seed", seed)[1] for seed in (0, 0, 1))
    assert first == again != other


def test_a_bad_file_among_good_ones_is_told_and_the_others_go_through(run, files):
    status, out, err = run("detect", "sneaker0.png", "text.png", "nowhere.png", "sneaker1.png", "--json")
    assert [json.loads(line)["file"] for line in out.splitlines()] == ["sneaker0.png", "sneaker1.png"]
    assert len(err.splitlines()) == 2
    assert "text.png: is not an image" in err
    assert "nowhere.png: could not be opened" in err
    assert status == 2


def test_only_bad_files_print_no_table(run, files):
    status, out, err = run("detect", "text.png")
    assert (status, out) == (2, "")
    assert err == (
        "idecode: text.png: is not an image that can be read; expected PNG, JPEG, WebP, BMP, TIFF or GIF. Check the file.\n"
    )


def test_a_folder_stands_for_the_images_in_it(run, files, tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    files["sneaker2.png"].rename(tmp_path / "deep" / "er" / "B.PNG")
    files["sneaker1.png"].rename(tmp_path / "deep" / "a.png")
    (tmp_path / "deep" / "notes.txt").write_text("not looked at")
    _, out, _ = run("detect", "deep", "sneaker0.png", "--json")
    assert [json.loads(line)["file"] for line in out.splitlines()] == [
        "deep/a.png",
        "deep/er/B.PNG",
        "sneaker0.png",
    ]
    (tmp_path / "empty").mkdir()
    status, out, err = run("detect", "empty", "sneaker0.png", "--json")
    assert (status, len(out.splitlines())) == (2, 1)
    assert "empty: expected files of type .png" in err


def test_a_glob_that_no_shell_has_expanded_stands_for_what_it_matches(run, files, tmp_path):
    files["sneaker2.png"].rename(tmp_path / "sneaker[2].png")
    _, out, _ = run("detect", "sneaker[2].png", "sneaker?.png", "--json")
    found = [json.loads(line)["file"] for line in out.splitlines()]
    assert found == ["sneaker[2].png", "sneaker0.png", "sneaker1.png"]
    status, out, err = run("detect", "boots*.png", "--json")
    assert (status, out) == (2, "")
    assert "boots*.png: no file matches this pattern" in err


def test_an_epsilon_that_can_flag_nothing_is_told_once(run, files):
    status, out, err = run("detect", "street.jpg", "--epsilon", 1e-6)
    assert status == 0
    assert err.count("can never flag anything") == 1
    assert "0 of 1 flagged" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n", 1000], "n must lie between 1 and"),
        (["--epsilon", 2], "epsilon must lie"),
        (["--detector", "nothing"], "No detector is called nothing"),
        (["--aggregate", "median"], "aggregate must be one of"),
        (["--device", "abacus"], "No device is called 'abacus'"),
        (["--n", "many"], "--n"),
        (["--unknown"], "--unknown"),
    ],
)
def test_a_wrong_setting_ends_with_status_2_and_one_sentence(run, files, arguments, message):
    status, out, err = run("detect", "sneaker0.png", *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_an_unexpected_error_is_no_verdict(run, files, monkeypatch):
    """Status 1 means flagged, so an error of our own must not end with Python's usual 1."""
    monkeypatch.setattr("idecode_core.detector.Detector.detect", lambda *a, **k: 1 / 0)
    status, _, err = run("detect", "sneaker0.png")
    assert status == 2
    assert "ZeroDivisionError" in err


def test_a_name_that_is_too_long_is_one_sentence_and_the_others_go_through(run, files):
    status, out, err = run("detect", "a" * 300 + ".png", "nope/", "sneaker0.png", "--json")
    assert (status, len(out.splitlines())) == (2, 1)
    assert "could not be opened (File name too long)" in err
    assert "There is no nope: expected a file, a folder of files" in err
    status, _, err = run("train", "a" * 300, "--out", "mine")
    assert (status, "File name too long. Check the path" in err, "Traceback" in err) == (2, True, False)


def test_odd_file_names_are_printed_as_they_are(run, files, tmp_path):
    name = "[red]sneaker[bold] ü 1.png"
    files["sneaker0.png"].rename(tmp_path / name)
    _, out, _ = run("detect", name)
    assert name in out


def test_help_is_quick_because_torch_is_not_imported():
    program = (
        "import sys; from idecode_core.cli.app import main\n"
        "try: main(['detect', '--help'])\n"
        "except SystemExit: pass\n"
        "print('torch' in sys.modules, 'streamlit' in sys.modules, 'scipy' in sys.modules)"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.splitlines()[-1] == "False False False"


COMMANDS = (
    "detect",
    "calibrate",
    "evaluate",
    "train",
    "merge",
    "paper score-sets",
    "reproduce",
    "data fetch",
    "data check",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run, command):
    status, out, _ = run(*command.split(), "--help")
    assert status == 0
    assert f"python -m idecode_core {command}" in out


def test_python_dash_m_runs_the_same_commands(files):
    command = [
        sys.executable,
        "-m",
        "idecode_core",
        "detect",
        str(files["street.jpg"]),
        str(files["text.png"]),
        "--json",
    ]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 2
    assert json.loads(finished.stdout)["is_ood"] is True
    assert "text.png" in finished.stderr


def test_a_new_detectors_bare_name_lies_where_the_app_looks_and_a_path_where_it_says(monkeypatch, tmp_path):
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path / "of the app"))
    assert new_place(Path("mine")) == tmp_path / "of the app" / "mine"
    assert new_place(Path("here/mine")) == Path("here/mine")
    assert new_place(CHECKPOINTS / "fashion-rotations", replace=True) == CHECKPOINTS / "fashion-rotations"


def test_calibrate_makes_a_detector_for_a_folder_of_images(run, tmp_path):
    (tmp_path / "own").mkdir()
    for i, image in enumerate(load_images("digits-sample").x[:30]):
        Image.fromarray(image).save(tmp_path / "own" / f"{i}.png")
    status, out, _ = run("calibrate", "own", "--out", "mine", "--n-max", 3, "--summary", "digits")
    assert status == 0
    assert "calibrated on 30 images" in out
    made = load_detector("mine", "cpu")
    base = load_detector(CHECKPOINTS / "fashion-rotations", "cpu")
    assert (made.name, made.summary) == ("mine", "digits")
    assert scorer_hash(made.scorer) == scorer_hash(base.scorer)
    expected = base.score_vectors(sorted((tmp_path / "own").iterdir()), n=3)
    np.testing.assert_allclose(made.calibration.score_vectors, expected, rtol=1e-5)
    digit = str(next((tmp_path / "own").iterdir()))
    _, out, _ = run("detect", digit, "--detector", "mine", "--n", 3, "--json")
    assert json.loads(out)["is_ood"] is False  # what the base detector flags is at home here


def test_calibrate_shows_the_strangest_and_takes_out_what_does_not_belong(run, monkeypatch, tmp_path):
    (tmp_path / "own").mkdir()
    clothing, digits = load_images("fashion-sample").x[:90], load_images("digits-sample").x[:3]
    for i, image in enumerate([*clothing, *digits]):
        Image.fromarray(image).save(tmp_path / "own" / f"{i:02d}.png")
    base = load_detector(CHECKPOINTS / "fashion-rotations", "cpu")
    vectors = base.score_vectors(sorted((tmp_path / "own").iterdir()), n=5)
    strange = np.argsort(-vectors.sum(axis=1), kind="stable")[:6]
    chosen = [place + 1 for place, i in enumerate(strange) if i >= 90]
    assert chosen  # some of the digits are among the six strangest
    answers = io.StringIO("none of them\n" + ", ".join(map(str, chosen)) + "\n")
    monkeypatch.setattr("sys.stdin", answers)
    status, out, err = run("calibrate", "own", "--out", "mine", "--n-max", 5, "--review", 6)
    assert status == 0
    assert [line.split()[1] for line in err.splitlines()[:6]] == [f"{i:02d}.png" for i in strange]
    assert "Expected numbers from 1 to 6" in err
    assert f"{len(chosen)} of the 6 strangest were taken out, {93 - len(chosen)} calibrate." in out
    left = [i for i in range(93) if i not in {strange[place - 1] for place in chosen}]
    made = load_detector("mine", "cpu")
    np.testing.assert_allclose(made.calibration.score_vectors, vectors[left], rtol=1e-5)
    assert "## Reviewed" in (tmp_path / "mine" / "card.md").read_text()
    status, _, err = run("calibrate", "own", "--out", "more", "--n-max", 2, "--review", 93)
    assert (status, "Between 1 and 92 of 93" in err) == (2, True)


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


def test_calibrate_overwrites_nothing_and_leaves_nothing_after_a_bad_file(run, files, tmp_path):
    (tmp_path / "own").mkdir()
    files["text.png"].rename(tmp_path / "own" / "text.png")
    status, _, err = run("calibrate", "own", "--out", "mine")
    assert status == 2
    assert "text.png: is not an image" in err
    assert not (tmp_path / "mine").exists()
    before = (CHECKPOINTS / "fashion-rotations" / "config.json").read_bytes()
    status, _, err = run("calibrate", "textures-sample", "--out", CHECKPOINTS / "fashion-rotations")
    assert status == 2
    assert "is or contains what is read" in err
    assert (CHECKPOINTS / "fashion-rotations" / "config.json").read_bytes() == before


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


@pytest.mark.parametrize(
    "command", [("calibrate", "nope/", "--out", "mine"), ("evaluate", "--id", "a/b", "--ood", "c")]
)
def test_a_folder_that_does_not_exist_is_told_as_one(run, command):
    status, _, err = run(*command)
    assert status == 2
    assert f"There is no folder {command[1] if command[0] == 'calibrate' else 'a/b'}: expected" in err
    assert "data fetch" not in err


def test_a_file_is_no_folder(run, files):
    status, _, err = run("calibrate", "sneaker0.png", "--out", "mine")
    assert status == 2
    assert "sneaker0.png is a file: expected a folder of images" in err


@pytest.fixture
def tiny_recipe(monkeypatch, tmp_path):
    """A recipe that trains in a second on 80 small images in a data root."""
    quick = get_recipe("fashion-quick")
    shows = replace(quick.shows, model=ModelConfig("compact", outputs=4, widths=(8, 8, 8)), size=16)
    recipe = replace(quick, name="tiny", dataset="tiny", shows=shows, epochs=2, batch=16)
    labels = replace(
        recipe,
        name="tiny-labels",
        shows=replace(shows, task="label"),
        transforms=SmallAffine(),
        base_ncm="invariance",
        epochs=1,
    )
    monkeypatch.setitem(RECIPES, "tiny", recipe)
    monkeypatch.setitem(RECIPES, "tiny-labels", labels)
    (tmp_path / "data").mkdir()
    for name, points in (("tiny-train", 80), ("tiny-test", 12), ("cifar10-test", 9)):
        np.savez(
            tmp_path / "data" / f"{name}.npz", x=random_images(points, seed=points), y=np.arange(points) % 4
        )
    return recipe


def test_train_ends_with_a_calibrated_detector(run, tiny_recipe, tmp_path):
    status, out, err = run("train", "tiny", "--device", "cpu", "--out", "made/own")
    assert status == 0, err
    assert "calibrated on 8 held-out images" in out
    for epoch in ("1/2", "2/2"):
        assert f"epoch {epoch}: loss" in err
    detector = load_detector("made/own", "cpu")
    assert detector.calibration.score_vectors.shape == (8, 20)
    assert detector.detect(random_images(2, seed=9), epsilon=0.2).p_values.shape == (2,)
    (folder,) = (tmp_path / "runs").glob("own-*")
    assert (folder / "log.jsonl").exists()
    status, _, err = run("train", "tiny", "--device", "cpu", "--out", "made/own")
    assert status == 2
    assert "already holds a detector" in err


def test_train_goes_on_with_a_run_of_its_own_length_only(run, tiny_recipe, tmp_path):
    arguments = ("train", "tiny", "--device", "cpu", "--out", "own", "--replace", "--epochs")
    for epochs in (1, 3):
        assert run(*arguments, epochs)[0] == 0
    logs = [path.read_text().splitlines() for path in (tmp_path / "runs").glob("own-*/log.jsonl")]
    assert sorted(len(log) for log in logs) == [1, 3]
    status, _, err = run(*arguments, 3)
    assert status == 0
    assert "epoch 3/3" not in err  # nothing is trained again
    status, _, err = run(*arguments, 3, "--no-resume")
    assert status == 0
    assert "epoch 3/3" in err


def test_train_tells_recipes_and_missing_data(run, tiny_recipe, tmp_path):
    status, _, err = run("train", "nothing")
    assert status == 2
    assert "No recipe is called 'nothing'. Expected one of fashion-rotations" in err
    status, _, err = run("train", "tiny", "--data-root", tmp_path / "elsewhere", "--out", "own")
    assert status == 2
    assert "'tiny-train' is not here" in err
    assert not (tmp_path / "own").exists()


def test_data_check_lists_what_is_there_and_what_is_missing(run, tiny_recipe, tmp_path):
    (tmp_path / "data" / "svhn-test.npz").write_bytes(b"cut off")
    status, out, _ = run("data", "check")
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert status == 0
    assert "80" in lines["tiny-train"]
    assert "damaged" in lines["svhn-test"]
    assert "bundled" in lines["fashion-sample"]
    assert "1,000" in lines["fashion-sample"]
    assert [name for name, line in lines.items() if "damaged" in line] == ["svhn-test"]
    assert "missing" in lines["cifar100-test"]
    assert "data fetch cifar100" in lines["cifar100-test"]


def test_data_fetch_refuses_unknown_names_before_anything_is_downloaded(run, tmp_path):
    status, _, err = run("data", "fetch", "cifar10", "imagenet", "--data-root", "d")
    assert status == 2
    assert "'imagenet' can be fetched" in err
    assert not (tmp_path / "d").exists()


def test_sounds_go_through_the_same_commands(run, tmp_path):
    clips = sounds((1.0,) * 12)
    (tmp_path / "clips").mkdir()
    for i, clip in enumerate(clips):
        soundfile.write(tmp_path / "clips" / f"{i:02}.wav", clip.samples, clip.sample_rate)
    save_detector(Detector.calibrate("noises", make_scorer(), clips[:9], n_max=2), tmp_path / "noises")
    (tmp_path / "picture.wav").write_bytes(b"no sound")
    status, out, err = run(
        "detect", "clips/11.wav", "picture.wav", "-d", "noises", "--n", 2, "--json", "--epsilon", 0.5
    )
    assert status == 2
    line = json.loads(out)
    assert line["file"] == "clips/11.wav"
    assert 0.1 <= line["p_value"] <= 1
    assert "picture.wav" in err
    status, _, err = run("calibrate", "clips", "-d", "noises", "--n-max", 3, "--out", "again")
    assert status == 0, err
    assert load_detector("again", "cpu").calibration.score_vectors.shape == (12, 3)


def test_calibrate_calls_sounds_sounds(run, tmp_path):
    clips = sounds((1.0,) * 5)
    (tmp_path / "clips").mkdir()
    for i, clip in enumerate(clips):
        soundfile.write(tmp_path / "clips" / f"{i}.wav", clip.samples, clip.sample_rate)
    save_detector(Detector.calibrate("noises", make_scorer(), clips, n_max=2), tmp_path / "noises")
    _, out, _ = run("calibrate", "clips", "-d", "noises", "--n-max", 2, "--out", "again")
    assert "calibrated on 5 sounds" in out
    assert load_detector("again", "cpu").summary == "Sounds like those of clips"
    assert "image" not in out
    _, _, err = run("calibrate", "nowhere", "-d", "noises", "--out", "third")
    assert "expected a folder of sounds" in err


def test_detectors_are_found_by_name_in_the_folder_that_a_variable_names(run, files, tmp_path, monkeypatch):
    made = Detector.calibrate("mine", small_scorer(), random_images(30), n_max=5)
    save_detector(made, tmp_path / "elsewhere" / "mine")
    assert run("detect", "street.jpg", "-d", "mine")[0] == 2
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path / "elsewhere"))
    _, out, _ = run("detect", "street.jpg", "-d", "mine", "--json")
    assert json.loads(out)["detector"] == "mine"


def test_reproduce_writes_sections_from_stored_scores(run, tmp_path, monkeypatch):
    write_detector(
        tmp_path / "own",
        "fashion-rotations",
        tiny_scorer(Rotations("all"), "cross_entropy", 4),
        "fashion-test",
    )
    write_detector(tmp_path / "own", "cifar10-projective", tiny_scorer(Projective(), "parameter_error", 8))
    status, out, _ = run("reproduce", "fashion", "--checkpoints", "own", "--results", "MINE.md")
    assert status == 0
    section = (tmp_path / "MINE.md").read_text()
    assert "k = 1,600; 300 iD test points" in section
    assert "| SVHN |" in out
    assert out.rstrip().endswith("Written to MINE.md.")
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path / "own"))
    status, out, _ = run("reproduce", "all")
    assert status == 0
    for name in ("table1", "auroc-vs-n", "false-detections", "fashion", "svhn"):
        assert f"<!-- begin {name} -->" in (tmp_path / "RESULTS.md").read_text()
    assert list((tmp_path / "results").glob("auroc-vs-n-*.svg"))
    status, _, err = run("reproduce", "table9")
    assert status == 2
    assert "table1, auroc-vs-n" in err
    assert "Traceback" not in err
    status, _, err = run("reproduce", "fdr")  # as earlier versions called it
    assert status == 2
    assert "is called false-detections now" in err


def test_score_sets_takes_a_detector_by_its_name(run, tiny_recipe, tmp_path, monkeypatch):
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path / "own"))
    made = Detector.calibrate("mine", small_scorer(), random_images(30), n_max=20, dataset="tiny")
    save_detector(made, tmp_path / "own" / "mine")
    status, out, err = run("paper", "score-sets", "mine", "--id-points", 10)
    assert status == 0, err
    assert "scores of tiny-test, cifar10-test are stored" in out
    stored = read_scores(tmp_path / "own" / "mine", read_settings(tmp_path / "own" / "mine").scorer_sha256)
    assert [one.score_vectors.shape for one in stored] == [(10, 100), (9, 100)]
    assert "CIFAR-10" in (tmp_path / "own" / "mine" / "card.md").read_text()
    _, out, _ = run("evaluate", "--detector", "mine", "--json")
    assert json.loads(out)["id_points"] == 10
    status, _, err = run("paper", "score-sets", "another")
    assert status == 2
    assert "No detector is called another: expected a detector folder, or one of: mine" in err


def test_score_sets_says_what_to_do_with_a_detector_of_your_own(run, tmp_path):
    save_detector(Detector.calibrate("mine", small_scorer(), random_images(5), n_max=2), tmp_path / "mine")
    status, _, err = run("paper", "score-sets", "mine")
    assert status == 2
    assert "evaluate --detector mine --id FOLDER" in err


def test_merge_makes_a_detector_that_can_be_scored_and_used(run, tiny_recipe, tmp_path):
    for name in ("tiny", "tiny-labels"):
        assert run("train", name, "--device", "cpu", "--out", f"own/{name}")[0] == 0
    both = ("own/tiny", "own/tiny-labels@label_cross_entropy")
    status, out, err = run("merge", *both, "--weight", 1, "--weight", 2, "--out", "own/both")
    assert status == 0, err
    assert "merged 2 members" in out
    merged = load_detector("own/both", "cpu")
    assert merged.calibration.k == 8
    first, second = (load_detector(f"own/{name}", "cpu").scorer for name in ("tiny", "tiny-labels"))
    probe = random_images(3, seed=77)
    member_vectors = [
        scorer.score(probe, n=4, seed=0).score_vectors
        for scorer in (first, replace(second, base_ncm="label_cross_entropy"))
    ]
    expected = np.zeros((3, 4))
    for weight, vectors, reference in zip((1, 2), member_vectors, merged.scorer.references, strict=True):
        for place in np.ndindex(expected.shape):
            at_least = np.sum(reference >= vectors[place])
            expected[place] += weight * -np.log((1 + at_least) / (1 + reference.size))
    np.testing.assert_allclose(merged.score_vectors(probe, n=4), expected, rtol=1e-5)
    status, out, err = run("paper", "score-sets", "own/both")
    assert status == 0, err
    assert "scores of tiny-test, cifar10-test are stored" in out
    status, _, err = run("merge", *both, "--weight", 1, "--out", "own/third")
    assert status == 2
    assert "--weight once for each of the 2 members" in err
    assert run("merge", *both, "--out", "own/both")[0] == 2  # never overwritten by accident


@pytest.fixture
def tiny_digits(monkeypatch, tmp_path):
    """The recipe of spoken digits, small, on noises in a data root."""
    usual = get_recipe("spoken-digits")
    shows = replace(usual.shows, widths=(4, 8), calibration_points=6)
    monkeypatch.setitem(RECIPES, "spoken-digits", replace(usual, shows=shows, epochs=1, batch=4))
    (tmp_path / "data").mkdir()
    for name, points, classes in (
        ("spokendigits-train", 18, ("one", "two")),
        ("othersounds-test", 6, ("hiss", "low hum")),
    ):
        clips = sounds((1.0,) * points, seed=points)
        np.savez(
            tmp_path / "data" / f"{name}.npz",
            x=np.concatenate([(32767 * clip.samples).astype(np.int16) for clip in clips]),
            offsets=np.cumsum([0, *(len(clip.samples) for clip in clips)]),
            y=np.arange(points) % 2,
            sample_rate=clips[0].sample_rate,
            classes=np.array(classes),
            fold=np.arange(points) // 2 % 3,
        )


def test_sounds_are_trained_and_scored_by_the_same_commands(run, tiny_digits, tmp_path):
    status, out, err = run("train", "spoken-digits", "--device", "cpu", "--out", "own/digits")
    assert status == 0, err
    status, out, err = run("paper", "score-sets", "own/digits")
    assert status == 0, err
    assert "scores of spokendigits-test, hiss, low-hum are stored" in out
    for place in ("sbp/calibration", "sbp/hiss", "kl_divergence/calibration"):
        assert (tmp_path / "own" / "digits" / "scores" / f"{place}.npz").exists()
    _, out, _ = run("evaluate", "--detector", "own/digits", "--n", 20, "--epsilon", 0.5, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["ood_set"], row["id_points"], row["ood_points"]) for row in rows] == [
        ("hiss", 6, 3),
        ("low hum", 6, 3),
    ]
