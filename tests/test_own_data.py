"""A user's own files become a detector: what is left out, how the parts are cut, what is said, and what it flags."""

# ruff: noqa: F811  `run` is a fixture of another file
import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image
from sklearn.metrics import roc_auc_score
from small import random_images
from test_cli import run  # noqa: F401  a fixture

from idecode_core.baselines.features import Features, Frozen
from idecode_core.cli import own_files
from idecode_core.errors import InputError
from idecode_core.evaluation.own_data import about_classes, own_result
from idecode_core.folder.detector import load_detector
from idecode_core.folder.stored import open_stored
from idecode_core.folder.training_record import Split, read_split, read_training
from idecode_core.image.sets import load_images
from idecode_core.models import ModelConfig
from idecode_core.training.own import fit as fitting
from idecode_core.training.own import plan as planning
from idecode_core.training.own.files import OwnFile, Scan, scan
from idecode_core.training.own.parts import OwnSplit, files_table, kinds_of, split_own
from tools.synthetic_sounds import MAKERS

ANIMALS = (2, 3, 4, 5, 6, 7)  # of CIFAR-10


def write_pictures(folder: Path, pictures: np.ndarray, ending: str = "png") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i, pixels in enumerate(pictures):
        Image.fromarray(pixels).save(folder / f"{i:03d}.{ending}")


@pytest.fixture
def small_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick network in the place of the one that knows ImageNet."""

    def network():  # type: ignore[no-untyped-def]
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            return Frozen(ModelConfig("compact", outputs=4, widths=(8, 8, 8)))

    monkeypatch.setattr(fitting, "pretrained", network)
    monkeypatch.setattr(planning, "SMALL", 32)
    monkeypatch.setattr(own_files, "MOST_OUTSIDE", 12)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """60 pictures of two kinds, without subfolders."""
    write_pictures(tmp_path / "own", random_images(60, 24))
    return tmp_path / "own"


def parts_of(folder: Path) -> dict[str, list[dict[str, str]]]:
    with (folder / "files.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {part: [row for row in rows if row["part"] == part] for part in {row["part"] for row in rows}}


def test_names_in_the_table_of_files_are_no_formulas() -> None:
    files = [OwnFile(Path("x"), name, "@class", "0" * 64, 8) for name in ("=1+1.png", "-2.png", "a.png")]
    found = Scan("here", "image", tuple(files), ("@class",), (), (), {})
    nothing = np.arange(0)
    table = files_table(found, OwnSplit(Split(np.arange(3), nothing, nothing), nothing))
    rows = list(csv.DictReader(table.splitlines()))
    assert [row["file"] for row in rows] == ["'=1+1.png", "'-2.png", "a.png"]
    assert {row["label"] for row in rows} == {"'@class"}


def test_animals_become_a_detector_that_flags_vehicles(run, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """With the real network, at fewer pixels to be quick; among the files are all that can go wrong with files."""
    monkeypatch.setattr(planning, "SMALL", 96)
    monkeypatch.setattr(own_files, "MOST_OUTSIDE", 15)
    monkeypatch.setattr(fitting, "MOST_LEFT_OUT", 1)
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path / "found by the app"))
    sample = load_images("cifar10-sample")
    for place, c in enumerate(ANIMALS):
        write_pictures(tmp_path / "my animals" / f"kind ä{place}", sample.x[sample.y == c])
    write_pictures(tmp_path / "vehicles", sample.only((0, 1, 8, 9)).x[:30])
    kind = tmp_path / "my animals" / "kind ä0"
    Image.open(kind / "000.png").convert("L").save(kind / "grey, 16 bit.png")
    Image.open(kind / "001.png").convert("RGBA").resize((50, 41)).save(kind / "large.webp")
    (kind / "cut.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    (kind / "again.png").write_bytes((kind / "003.png").read_bytes())
    (kind / "loop").symlink_to(tmp_path / "my animals")
    (kind / "itself.png").symlink_to(kind / "itself.png")
    (kind / "notes.txt").write_text("not looked at")
    status, out, err = run(
        "train", "my animals", "--out", "mine", "--ood", "vehicles", "--summary", "our animals"
    )
    assert status == 0, err
    assert "my animals: 74 different images in 6 classes (kind ä0" in out
    assert "2 files cannot be read and are left out" in out
    assert "cut.jpg" in out
    assert "itself.png" in out
    assert "again.png: the same as kind ä0/003.png" in out
    assert "Files of other types are not looked at: .txt (1)." in out
    assert "Expected time" in out
    assert "--detector mine; the app lists it" in out
    made = tmp_path / "found by the app" / "mine"
    detector = load_detector("mine", "cpu")  # by its name, as the app finds it
    assert detector.summary == "our animals"
    assert len((made / "left-out.txt").read_text(encoding="utf-8").splitlines()) == 3
    parts = parts_of(made)
    assert {name: len(rows) for name, rows in parts.items()} == {
        "proper": 34,
        "validation": 7,
        "calibration": 22,
        "test": 11,
    }
    assert len({row["content"] for rows in parts.values() for row in rows}) == 74
    assert detector.calibration.k == 22
    names = [row["file"] for row in parts["calibration"]]
    expected = detector.score_vectors([tmp_path / "my animals" / name for name in names], n=2)
    np.testing.assert_allclose(detector.calibration.score_vectors[:, :2], expected, rtol=1e-3)
    stored = open_stored(made)
    (against,) = own_result(stored).against
    both = np.concatenate(
        [one.score_vectors for one in (stored.id_set, *stored.ood_sets)]
    )  # 20 draws: 4 runs
    strange = np.arange(len(both)) >= len(stored.id_set)
    of_runs = both.astype(float).reshape(-1, 4, 5).sum(axis=2).T  # (4, N)
    p = [[(1 + np.sum(stored.calibration.scores(5) >= s)) / 23 for s in run] for run in of_runs]
    assert against.auroc == pytest.approx(np.mean([roc_auc_score(strange, -np.array(run)) for run in p]))
    assert against.auroc > 0.75
    assert f"vehicles: AUROC {100 * against.auroc:.1f} %" in out
    card = (made / "card.md").read_text(encoding="utf-8")
    assert "ImageNet" in card
    assert "as many independent runs as 20 draws give" in card
    assert "our animals" in (made / "report.html").read_text(encoding="utf-8")
    record = read_training(made)
    assert record is not None
    assert record.validation_accuracy is not None
    _, found, _ = run("detect", tmp_path / "vehicles" / "000.png", "--detector", "mine", "--json")
    assert (23 * json.loads(found)["p_value"]) % 1 == pytest.approx(0, abs=1e-6)  # a rank among 22 and itself
    status, _, err = run("train", "my animals", "--out", "mine")
    assert (status, "already holds a detector" in err) == (2, True)


def test_a_stopped_run_goes_on_and_ends_as_an_unbroken_one(
    run, own, small_network, monkeypatch, tmp_path
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(fitting, "PIECE", 8)
    arguments = ("train", "own", "--ood", "textures-sample", "--out")
    assert run(*arguments, "out/whole")[0] == 0
    real, seen = Features.encode, []

    def stops(self, samples, **more):  # type: ignore[no-untyped-def]
        seen.append(len(samples))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return real(self, samples, **more)

    monkeypatch.setattr(Features, "encode", stops)
    assert run(*arguments, "out/again")[0] != 0
    assert not (tmp_path / "out" / "again").exists()
    status, out, err = run(*arguments, "out/again")
    assert status == 0, err
    assert "Goes on with the unfinished run" in out
    assert (
        len(seen) == 3 + 3
    )  # 27 files in pieces of 8 and 6 to validate: two pieces were kept, two and one were left
    whole, again = (load_detector(tmp_path / "out" / name, "cpu") for name in ("whole", "again"))
    np.testing.assert_array_equal(whole.calibration.score_vectors, again.calibration.score_vectors)
    assert not (tmp_path / "runs" / "again" / "calibrating").exists()  # nothing is left lying about


def test_own_detectors_of_one_folder_can_be_merged_and_others_not(run, own, small_network, tmp_path) -> None:  # type: ignore[no-untyped-def]
    for model in ("mahalanobis", "neighbours", "rotations"):
        more = ("--epochs", 1) if model == "rotations" else ()
        status, _, err = run(
            "train", "own", "--ood", "textures-sample", "--model", model, "--out", f"out/{model}", *more
        )
        assert status == 0, err
    folders = [f"out/{model}" for model in ("mahalanobis", "neighbours", "rotations")]
    status, out, err = run("merge", *folders, "--out", "out/merged")
    assert status == 0, err
    assert "calibrated on 18 held-out images" in out
    split = read_split(tmp_path / "out" / "rotations")
    assert split.points == 60 - 9  # the test part is in none of its three
    merged = load_detector("out/merged", "cpu")
    names = [row["file"] for row in parts_of(tmp_path / "out" / "rotations")["calibration"]]
    expected = merged.score_vectors([own / name for name in names], n=2)
    np.testing.assert_allclose(merged.calibration.score_vectors[:, :2], expected, rtol=1e-4, atol=1e-6)
    (own / "000.png").write_bytes((own / "001.png").read_bytes())
    status, _, err = run("merge", *folders, "--out", "out/later")
    assert status == 2
    assert "not those that" in err


@pytest.mark.parametrize(
    ("make", "more", "said"),
    [
        (lambda folder: None, (), "own is not here: expected a folder of images"),
        (lambda folder: folder.mkdir(), (), "found none. Check"),
        (
            lambda folder: (folder.mkdir(), (folder / "phone.HEIC").write_text("?")),
            (),
            "found none but .heic (1). Check the path, or convert",
        ),
        (lambda folder: write_pictures(folder, random_images(1)), (), "expected at least 40 different images, got 1."),
        (
            lambda folder: [write_pictures(folder / str(i), random_images(9)) for i in range(5)],
            (),
            "got 9 (36 more cannot be read or are copies)",
        ),
        (
            lambda folder: (folder.mkdir(), (folder / "a.png").write_text("no picture")),
            (),
            "got 0 (1 more cannot be read",
        ),
        (
            lambda folder: write_pictures(folder, random_images(50)),
            ("--labels", "folders"),
            "--labels folders expects at least two subfolders",
        ),
        (lambda folder: write_pictures(folder, random_images(50)), ("--labels", "names"), "folders or none"),
        (lambda folder: write_pictures(folder, random_images(50)), ("--model", "best"), "No model is called 'best'"),
        (lambda folder: write_pictures(folder, random_images(50)), ("--ood", "nowhere/"), "There is no folder nowhere/"),
        (lambda folder: write_pictures(folder, random_images(50)), ("--ood", "own"), "that do not belong"),
        (lambda folder: write_pictures(folder, random_images(50)), ("--audio",), "expected sounds of type"),
    ],
)  # fmt: skip
def test_what_cannot_become_a_detector_is_told_in_one_sentence(run, tmp_path, make, more, said) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "own")
    status, _, err = run("train", "./own/", "--out", "out/mine", *more)
    assert status == 2
    assert said in err.replace("./", ""), err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_a_word_that_is_neither_a_folder_nor_a_recipe_lists_the_recipes(run) -> None:  # type: ignore[no-untyped-def]
    status, _, err = run("train", "fashion-rotation")
    assert status == 2
    assert "no folder fashion-rotation " in err
    assert "fashion-rotations" in err


def test_a_csv_names_files_beside_it_and_their_classes(tmp_path: Path) -> None:
    write_pictures(tmp_path / "own", random_images(12))
    rows = "".join(f"own/{i:03d}.png,{'odd' if i % 2 else 'even'}\n" for i in range(12))
    (tmp_path / "list.csv").write_text("path,label\n" + rows + "own/missing.png,odd\n")
    found = scan(tmp_path / "list.csv")
    assert found.classes == ("even", "odd")
    assert found.y.tolist() == [0, 1] * 6
    assert len(found.broken) == 1
    (tmp_path / "wrong.csv").write_text("picture\na.png\n")
    with pytest.raises(InputError, match="column called file or path"):
        scan(tmp_path / "wrong.csv")


def test_parts_do_not_overlap_and_follow_the_seed(own: Path) -> None:
    found = scan(own)
    first, again, other = (split_own(found, seed) for seed in (0, 0, 1))
    together = np.concatenate([indices for _, indices in first.parts()])
    assert sorted(together) == list(range(60))
    for (_, a), (_, b) in zip(first.parts(), again.parts(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.test, other.test)


def test_of_several_processes_only_the_first_shows_how_far_reading_is(own: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    for shown in (True, False):
        assert len(own_files.look(own, "image", None, shown=shown).files) == 60
        assert ("reading" in capsys.readouterr().err) == shown


def test_kinds_of_sounds_do_not_depend_on_clips_that_calibrate() -> None:
    generator = np.random.default_rng(0)
    clips = [torch.from_numpy(generator.normal(10 * (i % 2), 1, (8, 20))) for i in range(40)]
    proper = np.arange(30)
    kinds = kinds_of(clips, proper)
    assert len(set(kinds[:30:2]) & set(kinds[1:30:2])) == 0  # the two are told apart
    changed = [*clips[:30], *(100 * clip for clip in clips[30:])]
    np.testing.assert_array_equal(kinds_of(changed, proper)[:30], kinds[:30])


def test_recordings_become_a_detector_with_and_without_classes(run, tmp_path) -> None:  # type: ignore[no-untyped-def]
    generator = np.random.default_rng(0)
    for name in ("tone", "noise"):
        (tmp_path / "heard" / name).mkdir(parents=True)
        for i in range(22):
            soundfile.write(
                tmp_path / "heard" / name / f"{i}.wav", MAKERS[name](0.4, 16_000, generator=generator), 16_000
            )
    (tmp_path / "heard" / "tone" / "broken.wav").write_bytes(b"RIFF")
    for labels, said in (("folders", "2 classes (noise, tone)"), ("none", "kinds are found by k-means")):
        status, out, err = run(
            "train", "heard", "--audio", "--labels", labels, "--epochs", 2, "--out", f"out/{labels}"
        )
        assert status == 0, err
        assert said in out
        assert "1 file cannot be read" in out
        made = load_detector(f"out/{labels}", "cpu")
        assert made.calibration.k == 13
        assert made.scorer.modality == "audio"
        assert "recordings: AUROC" in out


def test_weak_results_are_said_with_what_to_try(run, own, small_network, tmp_path) -> None:  # type: ignore[no-untyped-def]
    write_pictures(tmp_path / "same kind", random_images(60, 24, seed=5))
    status, out, err = run("train", "own", "--ood", "same kind", "--out", "out/mine")
    assert status == 0, err
    assert "Weak: With 18 calibration files no p-value is below 0.053" in out
    assert "hardly tells your files from same kind" in out.replace("same-kind", "same kind")
    record = read_training(tmp_path / "out" / "mine")
    assert record is not None
    chance = replace(
        record, validation_accuracy=0.28, settings={"class_names": list("abcd"), "left_out": {"a": 0.5}}
    )
    classes, passing = about_classes(chance)
    assert "near chance (25%)" in classes
    assert "--labels none" in classes
    assert "Other classes pass as familiar" in passing
    good = replace(
        record, validation_accuracy=0.9, settings={"class_names": list("abcd"), "left_out": {"a": 0.9}}
    )
    assert about_classes(good) == []


def test_a_class_that_is_left_out_is_strange_when_it_looks_different(small_network) -> None:  # type: ignore[no-untyped-def]
    assert fitting.share_above(np.array([2.0, 3.0]), np.array([1.0, 2.0])) == 0.875


def test_calibrate_leaves_out_copies_and_broken_files_and_names_the_parent(run, tmp_path) -> None:  # type: ignore[no-untyped-def]
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
    assert "calibrated on 30 images" in out
    assert "copy.png: the same as 000.png" in out
    assert out.count("1 file cannot be read") == 2
    assert "Recalibrating repairs false alarms, not detection" in out
    assert "fashion-sample: fashion-rotations" in out
    assert "other: fashion-rotations 3 of 3" in out
    assert "Parent: fashion-rotations" in (tmp_path / "mine" / "card.md").read_text(encoding="utf-8")
