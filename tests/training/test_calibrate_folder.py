"""Calibrating on a folder: copies stay, broken files and the detector's own are left out."""

# ruff: noqa: F811  `run` is a fixture of another file
import numpy as np
import pytest
from PIL import Image
from test_commands import run  # noqa: F401  a fixture
from test_train_folder import own, parts_of, small_network, write_pictures  # noqa: F401  fixtures

from idecode_core import calibrate_folder, evaluate, train_folder
from idecode_core.detector import Detector
from idecode_core.errors import InputError, SettingError
from idecode_core.image.sets import load_images


def test_a_detectors_own_files_neither_calibrate_nor_test_it(own, small_network, tmp_path) -> None:  # type: ignore[no-untyped-def]
    trained = train_folder(own, tmp_path / "out" / "mine", ood=["textures-sample"], runs=tmp_path / "runs")
    again = {"n_max": 2, "device": "cpu", "ood": ["textures-sample"]}
    with pytest.raises(InputError, match=r"27 of 60 files are among .* \(27 in its part proper\)"):
        calibrate_folder(trained.folder, own, tmp_path / "out" / "again", **again)
    with pytest.raises(InputError, match=r"27 in its part proper|24 in its part calibration and 27"):
        evaluate(trained.folder, own, ["textures-sample"], n=2)
    renamed = tmp_path / "renamed"
    write_pictures(renamed, np.array([np.asarray(Image.open(path)) for path in sorted(own.iterdir())]), "bmp")
    with pytest.raises(InputError, match="--allow-training-files"):
        evaluate(trained.folder, renamed, ["textures-sample"], n=2)  # found by content
    assert evaluate(trained.folder, own, ["textures-sample"], n=2, allow_training_files=True).rows
    parts = parts_of(trained.folder)
    for part in ("test", "calibration"):
        write_pictures(
            tmp_path / part, np.array([np.asarray(Image.open(own / row["file"])) for row in parts[part]])
        )
    assert evaluate(trained.folder, tmp_path / "test", ["textures-sample"], n=2).rows[0].id_points == 9
    made = calibrate_folder(trained.folder, tmp_path / "calibration", tmp_path / "out" / "again", **again)
    assert made.detector.calibration.k == 24
    with pytest.raises(InputError, match=r"24 of 24 files .* in its part calibration"):
        evaluate(made.folder, tmp_path / "calibration", ["textures-sample"], n=2)


def test_calibrate_keeps_copies_leaves_out_broken_files_and_names_the_parent(run, tmp_path) -> None:  # type: ignore[no-untyped-def]
    write_pictures(tmp_path / "own", load_images("digits-sample").x[:30])
    (tmp_path / "own" / "copy.png").write_bytes((tmp_path / "own" / "000.png").read_bytes())
    (tmp_path / "own" / "cut.png").write_bytes(b"\x89PNG")
    status, _, err = run("calibrate", "own", "--out", "mine", "--n-max", 2, "--strict")
    assert status == 2
    assert "--strict" in err
    write_pictures(tmp_path / "other", load_images("textures-sample").x[:3])
    (tmp_path / "other" / "cut too.png").write_bytes(
        b"\x89PNG"
    )  # found out before anything is calibrated, and no reason to stop
    outside = ("--ood", "fashion-sample", "--ood", "other")
    status, out, err = run("calibrate", "own", "--out", "mine", "--n-max", 2, *outside)
    assert status == 0, err
    assert "calibrated on 31 images" in out
    assert "copy.png: the same as 000.png" in out
    assert out.count("1 file cannot be read") == 1
    assert "Recalibrating repairs false alarms, not detection" in out
    assert "fashion-sample: fashion-rotations" in out
    assert "other: fashion-rotations 3 of 3" in out
    assert "Parent: fashion-rotations" in (tmp_path / "mine" / "card.md").read_text(encoding="utf-8")


def test_a_review_of_more_files_than_there_are_is_refused_before_any_work(own, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(Detector, "calibrate", lambda *_, **__: pytest.fail("it was scored"))
    with pytest.raises(SettingError, match="Between 1 and 59 of 60"):
        calibrate_folder("fashion-rotations", own, tmp_path / "again", review=60)


def test_what_does_not_belong_is_not_among_what_calibrates_by_content(own, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(Detector, "calibrate", lambda *_, **__: pytest.fail("it was scored"))
    pictures = np.array([np.asarray(Image.open(path)) for path in sorted(own.iterdir())[:3]])
    write_pictures(tmp_path / "other", np.concatenate([pictures, 255 - pictures]), "bmp")
    with pytest.raises(InputError, match=r"3 of 6 files are also in .*Take them out of one of the two"):
        calibrate_folder("fashion-rotations", own, tmp_path / "again", ood=[tmp_path / "other"])
