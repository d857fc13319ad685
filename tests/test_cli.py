"""The command line: exit statuses, tables for people, JSON for programs, one sentence an error."""

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
from small import random_images
from test_audio_scoring import make_scorer, sounds

from idecode_core import recipes
from idecode_core.checkpoint import CHECKPOINTS, load_detector, save_detector, scorer_hash
from idecode_core.cli import main
from idecode_core.data import load_images
from idecode_core.detector import Detector
from idecode_core.evaluation import ScoreSet, write_scores
from idecode_core.models import ModelConfig
from idecode_core.recipes import get_recipe

SNEAKER = 7  # class number


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command in an empty directory: (exit status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IDECODE_DATA", raising=False)
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


def test_json_has_one_line_a_file_with_what_the_library_says(run, files):
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
        assert (line["n"], line["epsilon"], line["seed"], line["detector"]) == (
            7,
            0.1,
            3,
            "fashion-rotations",
        )
    assert (status, err) == (1, "")


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


def test_odd_file_names_are_printed_as_they_are(run, files, tmp_path):
    name = "[red]sneaker[bold] ü 1.png"
    files["sneaker0.png"].rename(tmp_path / name)
    _, out, _ = run("detect", name)
    assert name in out


def test_help_is_quick_because_torch_is_not_imported():
    program = (
        "import sys; from idecode_core.cli import main\n"
        "try: main(['detect', '--help'])\n"
        "except SystemExit: pass\n"
        "print('torch' in sys.modules, 'streamlit' in sys.modules, 'scipy' in sys.modules)"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.splitlines()[-1] == "False False False"


@pytest.mark.parametrize("command", ["detect", "calibrate", "evaluate", "train", "data fetch", "data check"])
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
    assert "already holds a detector" in err
    assert (CHECKPOINTS / "fashion-rotations" / "config.json").read_bytes() == before


def test_evaluate_compares_two_folders(run, files, tmp_path):
    for name, images in (
        ("good", load_images("fashion-sample").x[:40]),
        ("strange", load_images("photos-sample").x[:20]),
    ):
        (tmp_path / name).mkdir()
        for i, image in enumerate(images):
            Image.fromarray(image).save(tmp_path / name / f"{i:02}.png")
    status, out, _ = run("evaluate", "--id", "good", "--ood", "strange", "--json", "--n", 2)
    assert status == 0
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


def test_evaluate_reads_stored_scores_without_running_the_model(run, tmp_path, monkeypatch):
    _, _, _ = run("calibrate", "textures-sample", "--out", "mine", "--n-max", 20)
    detector = load_detector("mine", "cpu")
    generator = np.random.default_rng(0)
    for name, is_ood in (("known-test", False), ("odd-test", True)):
        vectors = detector.calibration.score_vectors[generator.integers(0, 200, (60,))].repeat(1, axis=0)
        vectors = np.tile(vectors, 5) + (10 if is_ood else 0)
        write_scores(
            "mine", ScoreSet(name, name, is_ood, vectors.astype(np.float32)), scorer_hash(detector.scorer)
        )
    monkeypatch.setattr(
        "idecode_core.scoring.ImageScorer.score", lambda *a, **k: pytest.fail("the model was run")
    )
    status, out, _ = run("evaluate", "--detector", "mine", "--json")
    row = json.loads(out)
    assert (status, row["auroc"], row["tnr"], row["detection_rate"]) == (0, 1.0, 1.0, 1.0)
    assert (row["id_set"], row["ood_set"], row["id_points"]) == ("known-test", "odd-test", 60)


def test_evaluate_wants_both_sets_or_none(run):
    status, _, err = run("evaluate", "--id", "fashion-sample")
    assert status == 2
    assert "both --id and --ood" in err
    status, _, err = run("evaluate", "--id", "fashion-sample", "--ood", "nowhere")
    assert status == 2
    assert "'nowhere' is not here" in err


@pytest.fixture
def tiny_recipe(monkeypatch, tmp_path):
    """A recipe that trains in a second on 80 small images in a data root."""
    recipe = replace(
        get_recipe("fashion-quick"),
        name="tiny",
        dataset="tiny",
        model=ModelConfig("compact", outputs=4, widths=(8, 8, 8)),
        epochs=2,
        batch=16,
        size=16,
    )
    monkeypatch.setitem(recipes.RECIPES, "tiny", recipe)
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "tiny-train.npz", x=random_images(80), y=np.zeros(80))
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
    assert (tmp_path / "runs" / "own" / "log.jsonl").exists()
    status, _, err = run("train", "tiny", "--device", "cpu", "--out", "made/own")
    assert status == 2
    assert "already holds a detector" in err


def test_train_resumes_and_refuses_a_run_of_another_length(run, tiny_recipe, tmp_path):
    assert run("train", "tiny", "--device", "cpu", "--epochs", 1, "--out", "own")[0] == 0
    status, _, err = run("train", "tiny", "--device", "cpu", "--epochs", 3, "--out", "own", "--replace")
    assert status == 2
    assert "--no-resume" in err
    assert (
        run("train", "tiny", "--device", "cpu", "--epochs", 3, "--out", "own", "--replace", "--no-resume")[0]
        == 0
    )
    assert len((tmp_path / "runs" / "own" / "log.jsonl").read_text().splitlines()) == 3


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
    assert "missing" in lines["cifar10-test"]
    assert "data fetch cifar10" in lines["cifar10-test"]


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
