"""`idecode calibrate`: a detector for a folder; nothing is overwritten or left half-made."""

# ruff: noqa: F811  `files` and `run` are fixtures of another file

import io
import json

import numpy as np
import soundfile
from PIL import Image
from test_audio_scorer import make_scorer, sounds
from test_commands import files, run  # noqa: F401  fixtures

from idecode_core.detector import Detector
from idecode_core.folder.detector import load_detector, save_detector, scorer_hash
from idecode_core.folder.settings import CHECKPOINTS
from idecode_core.image.sets import load_images


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
    status, _, err = run(
        "calibrate", "own", "--out", "more", "--n-max", 2, "--review", 6
    )  # nobody is there any more
    assert (status, "it ended" in err, (tmp_path / "more").exists()) == (2, True, False)


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
