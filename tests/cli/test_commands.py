"""The command line: exit statuses, tables for people, JSON for programs, one sentence per error."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import typer
from PIL import Image
from sklearn.datasets import load_sample_image
from small import random_images, read_scores, small_scorer
from test_audio_scorer import make_scorer, sounds
from test_experiments import tiny_scorer, write_detector

from idecode_core.cli.app import app, main
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.place import new_place
from idecode_core.folder.settings import CHECKPOINTS, read_settings
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n", 1000], "Calibrate again with a larger n_max"),
        (["--n", 0], "got 0. Give a whole number from 1 on."),
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
    monkeypatch.chdir(tmp_path)
    assert new_place(Path("mine")) == tmp_path / "of the app" / "mine"
    assert new_place(Path("here/mine")) == Path("here/mine")
    assert new_place(CHECKPOINTS / "fashion-rotations", replace=True) == CHECKPOINTS / "fashion-rotations"
    for text in ("./mine", "mine/"):
        assert new_place(text) == Path("mine")
        for name in ("train", "calibrate", "merge", "pull"):
            command = typer.main.get_command(app).commands[name]
            assert command.make_context(name, ["source", "--out", text]).params["out"] == tmp_path / "mine"
    for text in (".", "/"):
        with pytest.raises(SettingError, match=f"^'{re.escape(text)}' is not a detector's name"):
            new_place(text)


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
    assert "merged 1 member, calibrated" in run("merge", both[0], "--out", "own/one")[1]
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
