"""Distances fitted to a folder: they learn where things stand, and known outliers choose."""

# ruff: noqa: F811  `run` is a fixture of another file
import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score
from small import random_images
from test_commands import run  # noqa: F401  a fixture
from test_train_folder import own, parts_of, small_network, write_pictures  # noqa: F401  fixtures

from idecode_core import evaluate, train_folder
from idecode_core.errors import InputError
from idecode_core.folder.detector import load_detector
from idecode_core.folder.record import read_training
from idecode_core.folder.stored import open_stored
from idecode_core.image.sets import load_images
from idecode_core.quality.score_sets import SetToScore
from idecode_core.quality.user_data import user_result
from idecode_core.training import fit_distance as fitting
from idecode_core.training import plan as planning
from idecode_core.training import user_files
from idecode_core.training.choice import KNOWN
from idecode_core.training.user_files import scan
from idecode_core.training.user_parts import split_user_files


def prefers_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is tried, known outliers speak for the nearest neighbours."""
    real = fitting.judged

    def judged(*arguments):  # type: ignore[no-untyped-def]
        tried = real(*arguments)
        return {name: found | {KNOWN: 0.9 if name == "neighbours" else 0.6} for name, found in tried.items()}

    monkeypatch.setattr(fitting, "judged", judged)


def test_known_outliers_choose_and_others_measure_what_that_gained(
    run, own, small_network, tmp_path, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(user_files, "MOST_OUTSIDE", 30)
    prefers_neighbours(monkeypatch)
    write_pictures(tmp_path / "known", load_images("textures-sample").x[:24])
    status, out, err = run("train", "own", "--ood", "known", "--learn-from-ood", "--out", "out/mine")
    assert status == 0, err
    assert "Known outliers: 12 may choose another model, 12 others test it" in out
    assert (
        "Taken: neighbours, with AUROC 90.0 % on files kept from fitting against known outliers; mahalanobis 60.0 %"
        in out
    )
    made = tmp_path / "out" / "mine"
    parts, stored = parts_of(made), open_stored(made)
    chose = {row["content"] for row in parts["validation"]}
    known = scan(tmp_path / "known")
    others = [file for file in known.files if file.content not in chose]
    assert (len(chose), len(others)) == (12, 12)
    detector = load_detector(made, "cpu")
    expected = detector.score_vectors([file.path for file in others], n=5)
    (tested,) = stored.ood_sets  # the outliers that chose are in no test
    np.testing.assert_allclose(tested.score_vectors[:, :5], expected, rtol=1e-4)
    inside = detector.score_vectors([own / row["file"] for row in parts["test"]], n=5)
    area = roc_auc_score([0] * 9 + [1] * 12, np.concatenate([inside, expected]).sum(axis=1))
    said = f"on your test files and 12 others, which had no part in the choice, AUROC {100 * area:.1f} % ("
    usual = train_folder(
        own, tmp_path / "out" / "usual", ood=["known"], model="mahalanobis", runs=tmp_path / "runs"
    )
    inside, outside = (
        usual.detector.score_vectors(some, n=5).sum(axis=1)
        for some in ([own / row["file"] for row in parts["test"]], [file.path for file in others])
    )
    area = roc_auc_score([0] * 9 + [1] * 12, np.concatenate([inside, outside]))
    for text in (out, *((made / name).read_text(encoding="utf-8") for name in ("card.md", "report.html"))):
        assert said in text
        assert f"where mahalanobis, taken without them, has {100 * area:.1f} % (" in text
    with pytest.raises(InputError, match=r"12 of 24 files are among .* \(12 in its part validation\)"):
        evaluate(made, tmp_path / "known", ["digits-sample"], n=2)


def test_files_that_calibrate_or_test_have_no_part_in_what_known_outliers_choose(
    own, small_network, tmp_path, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    write_pictures(tmp_path / "known", load_images("textures-sample").x[:12])

    def tried(name: str) -> dict[str, dict[str, float]]:
        options = {"ood": [tmp_path / "known"], "learn_from_ood": True, "runs": tmp_path / "runs"}
        made = train_folder(own, tmp_path / "out" / name, **options)
        record = read_training(made.folder)
        assert record is not None
        assert "too few to measure" in made.choice or "Nothing gained" in made.choice
        assert made.record()["model"] == record.recipe
        found: dict[str, dict[str, float]] = record.settings["tried"]
        return found

    before = tried("before")
    assert set(before) == {"mahalanobis", "neighbours"}
    split = split_user_files(scan(own), validates=False)
    for i in (*split.split.calibration, *split.test):
        Image.fromarray(random_images(1, 24, seed=1000 + i)[0] // 3).save(own / f"{i:03d}.png")
    assert tried("after") == before
    prefers_neighbours(monkeypatch)
    tried("few")


def test_copies_of_known_outliers_choose_together_or_not_at_all() -> None:
    first, second = random_images(20, seed=3), random_images(10, seed=4)
    sets = [
        SetToScore("a", True, np.concatenate([first, first[:5]])),
        SetToScore("b", True, [*first[5:12], *second]),
    ]
    halves = [user_files.split_known(sets, seed) for seed in (0, 0, 1)]
    contents = [
        [{content for one in half for content in user_files.contents_of(one.points)} for half in halved]
        for halved in halves
    ]
    assert contents[0] == contents[1] != contents[2]
    for choose, test in contents:
        assert (len(choose), len(test)) == (15, 15)
        assert not choose & test
    assert sum(len(one) for half in halves[0] for one in half) == 25 + 17


def test_places_learn_where_things_stand_and_see_that_one_is_missing(run, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(planning, "SMALL", 64)
    monkeypatch.setattr(user_files, "MOST_OUTSIDE", 8)
    monkeypatch.setattr(fitting, "MOST_PLACED", 20)  # of 27: the others are not needed
    generator = np.random.default_rng(0)
    pictures = generator.normal(200, 4, (68, 64, 64, 3))
    for i, picture in enumerate(pictures):
        for left in (8, 48)[: 1 if i >= 60 else 2]:
            picture[28:36, left : left + 8] = 40
    pictures = np.clip(pictures, 0, 255).astype(np.uint8)
    write_pictures(tmp_path / "faces", pictures[:60])
    write_pictures(tmp_path / "missing", pictures[60:])
    status, out, err = run(
        "train", "faces", "--model", "places", "--ood", "missing", "--out", str(tmp_path / "out" / "faces")
    )
    assert status == 0, err
    assert "distance of the strangest place from what is known there" in out
    detector = load_detector(tmp_path / "out" / "faces", "cpu")
    assert detector.scorer.kind == "places"
    (against,) = user_result(open_stored(tmp_path / "out" / "faces")).against
    assert (against.auroc, against.detected) == (1.0, 1.0)
