"""One walk through a user's folders: every command and call takes the same files, and none that is hidden."""

# ruff: noqa: F811  `run` is a fixture of another file
import json
from pathlib import Path

import pandas
import pytest
from PIL import Image
from small import random_images, small_scorer
from test_commands import run  # noqa: F401  a fixture

from idecode_core.detector import Detector
from idecode_core.files.find import listed_in, walk
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.training.user_files import scan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three pictures, and three that nobody meant: of another system, of a cache, and a link to a folder."""
    names = ("a.png", "below/b.PNG", "below/c.png", "._a.png", ".cache/d.png", "below/.trash/e.png")
    for name, pixels in zip(names, random_images(6), strict=True):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path, format="png")
    (tmp_path / "photos" / "round").symlink_to(tmp_path / "photos")
    (tmp_path / "photos" / "notes.txt").write_text("no picture")
    return tmp_path / "photos"


EXPECTED = ["a.png", "below/b.PNG", "below/c.png"]


def test_detect_score_train_calibrate_and_evaluate_take_the_same_files(run, folder, tmp_path) -> None:  # type: ignore[no-untyped-def]
    save_detector(
        Detector.calibrate("small", small_scorer(), random_images(30, seed=1), n_max=2), tmp_path / "small"
    )
    options = ("--detector", "small", "--n", 2)
    _, out, _ = run("detect", "photos", *options, "--json")
    assert [json.loads(line)["file"] for line in out.splitlines()] == [f"photos/{name}" for name in EXPECTED]
    assert run("score", "photos", "--out", "scored", "--workers", 1, *options)[0] == 0
    assert sorted(pandas.read_parquet(tmp_path / "scored")["file"]) == [f"photos/{name}" for name in EXPECTED]
    assert [file.name for file in scan(folder).files] == EXPECTED
    status, _, err = run("calibrate", "photos", "--detector", "small", "--n-max", 2, "--out", "again")
    assert status == 0, err
    assert load_detector(tmp_path / "again", "cpu").calibration.k == 3
    _, out, _ = run("evaluate", "--id", "photos", "--ood", "textures-sample", *options, "--json")
    assert json.loads(out)["id_points"] == 3


def test_the_walk_is_in_a_fixed_order(folder: Path) -> None:
    found = [str(Path(name).relative_to(folder)) for name in walk(folder)]
    assert found == ["a.png", "notes.txt", "below/b.PNG", "below/c.png"]


def test_a_list_names_files_with_and_without_classes(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("class,file\ndog,a.png\n,\ncat,b.png\n")
    assert list(listed_in(tmp_path / "list.csv")) == [("a.png", "dog"), ("b.png", "cat")]
    (tmp_path / "list.txt").write_text("a.png\r\n\nb c.png\n")
    assert list(listed_in(tmp_path / "list.txt")) == [("a.png", ""), ("b c.png", "")]
