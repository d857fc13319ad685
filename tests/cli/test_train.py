"""`idecode train`: recipes end with a calibrated detector."""

# ruff: noqa: F811  `run` and `tiny_recipe` are fixtures of another file

from small import random_images
from test_commands import run, tiny_recipe  # noqa: F401  fixtures

from idecode_core.folder.detector import load_detector


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
