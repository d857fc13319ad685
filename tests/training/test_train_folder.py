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
from small import random_images, small_scorer
from test_commands import run  # noqa: F401  a fixture

from idecode_core import calibrate_folder, evaluate, plan_folder, train_folder
from idecode_core.cli.inputs import progress_bars
from idecode_core.detector import Detector
from idecode_core.errors import InputError, SettingError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.record import Split, read_split, read_training
from idecode_core.folder.stored import open_stored
from idecode_core.image.sets import load_images
from idecode_core.models import ModelConfig
from idecode_core.quality.score_sets import SetToScore
from idecode_core.quality.user_data import about_classes, learned_nothing, user_result
from idecode_core.scorers.features import Features, Frozen
from idecode_core.training import fit_distance as fitting
from idecode_core.training import plan as planning
from idecode_core.training import user_files
from idecode_core.training.choice import KNOWN, best
from idecode_core.training.fit_sounds import CLEARLY
from idecode_core.training.user_files import Scan, UserFile, scan
from idecode_core.training.user_parts import UserSplit, files_table, kinds_of, split_user_files
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
    monkeypatch.setattr(user_files, "MOST_OUTSIDE", 12)


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
    files = [UserFile(Path("x"), name, "@class", "0" * 64, 8) for name in ("=1+1.png", "-2.png", "a.png")]
    found = Scan("here", "image", tuple(files), ("@class",), (), (), {})
    nothing = np.arange(0)
    table = files_table(found, UserSplit(Split(np.arange(3), nothing, nothing), nothing))
    rows = list(csv.DictReader(table.splitlines()))
    assert [row["file"] for row in rows] == ["'=1+1.png", "'-2.png", "a.png"]
    assert {row["label"] for row in rows} == {"'@class"}


def test_animals_become_a_detector_that_flags_vehicles(run, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """With the real network, at fewer pixels to be quick; among the files are all that can go wrong with files."""
    monkeypatch.setattr(planning, "SMALL", 96)
    monkeypatch.setattr(user_files, "MOST_OUTSIDE", 15)
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
    assert "my animals: 75 images in 6 classes (kind ä0" in out
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
    assert len((made / "left-out.txt").read_text(encoding="utf-8").splitlines()) == 2
    parts = parts_of(made)
    contents = {name: {row["content"] for row in rows} for name, rows in parts.items()}
    assert {name: len(some) for name, some in contents.items()} == {
        "proper": 34,
        "calibration": 29,
        "test": 11,
    }
    assert sum(map(len, parts.values())) == 75  # the copy is in one part with its original
    k = len(parts["calibration"])
    assert detector.calibration.k == k
    names = [row["file"] for row in parts["calibration"]]
    expected = detector.score_vectors([tmp_path / "my animals" / name for name in names], n=2)
    np.testing.assert_allclose(detector.calibration.score_vectors[:, :2], expected, rtol=1e-3)
    stored = open_stored(made)
    (against,) = user_result(stored).against
    both = np.concatenate(
        [one.score_vectors for one in (stored.id_set, *stored.ood_sets)]
    )  # 20 draws: 4 runs
    strange = np.arange(len(both)) >= len(stored.id_set)
    of_runs = both.astype(float).reshape(-1, 4, 5).sum(axis=2).T  # (4, N)
    p = [[(1 + np.sum(stored.calibration.scores(5) >= s)) / (k + 1) for s in run] for run in of_runs]
    assert against.auroc == pytest.approx(np.mean([roc_auc_score(strange, -np.array(run)) for run in p]))
    assert against.auroc > 0.75
    assert f"vehicles: AUROC {100 * against.auroc:.1f} %" in out
    card = (made / "card.md").read_text(encoding="utf-8")
    assert "ImageNet" in card
    assert "DeLong" in card
    assert "±" not in card
    assert "sampling error of about one point" not in card
    assert "our animals" in (made / "report.html").read_text(encoding="utf-8")
    record = read_training(made)
    assert record is not None
    assert record.calibration_accuracy is not None
    _, found, _ = run("detect", tmp_path / "vehicles" / "000.png", "--detector", "mine", "--json")
    line = json.loads(found)
    assert line["p_value"] == pytest.approx((1 + line["rank"]) / (k + 1))  # a rank among k and itself
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
    assert len(seen) == 3 + 2  # 27 files in pieces of 8: two pieces were kept, two were left
    whole, again = (load_detector(tmp_path / "out" / name, "cpu") for name in ("whole", "again"))
    np.testing.assert_array_equal(whole.calibration.score_vectors, again.calibration.score_vectors)
    (folder,) = (tmp_path / "runs").glob("again-*")
    assert not (folder / "calibrating").exists()  # nothing is left lying about


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
        (
            lambda folder: (
                write_pictures(folder, random_images(50)),
                write_pictures(folder.parent / "known", random_images(9, seed=7)),
                Image.open(folder / "030.png").save(folder.parent / "known" / "renamed.bmp"),
            ),
            ("--ood", "known", "--learn-from-ood"),
            "known: 1 of 10 files are also in own",
        ),
        (
            lambda folder: write_pictures(folder, random_images(50)),
            ("--learn-from-ood",),
            "name them with --ood",
        ),
        (
            lambda folder: write_pictures(folder, random_images(50)),
            ("--ood", "textures-sample", "--learn-from-ood", "--model", "patches"),
            "leave one of them out",
        ),
        (
            lambda folder: (
                write_pictures(folder, random_images(50)),
                write_pictures(folder.parent / "known", random_images(5, seed=7)),
            ),
            ("--ood", "known", "--learn-from-ood"),
            "at least 6 different files that do not belong",
        ),
        (
            lambda folder: write_pictures(folder, random_images(50)),
            ("--audio",),
            "expected sounds, found none but .png (50). For pictures leave --audio out.",
        ),
        (
            lambda folder: (folder.mkdir(), (folder / "a.wav").write_text("?")),
            (),
            "expected images, found none but .wav (1). For sounds add --audio.",
        ),
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
    first, again, other = (split_user_files(found, seed) for seed in (0, 0, 1))
    together = np.concatenate([indices for _, indices in first.parts()])
    assert sorted(together) == list(range(60))
    for (_, a), (_, b) in zip(first.parts(), again.parts(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.test, other.test)


def test_of_several_processes_only_the_first_shows_how_far_reading_is(own: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    for shown in (True, False):
        with progress_bars(shown) as report:
            assert len(scan(own, report=report).files) == 60
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
        assert made.calibration.k == 13  # 30 %; 10 % choose the model
        assert made.scorer.modality == "audio"
        assert "if it tells validation files clearly better from changed ones" in out
        record = read_training(tmp_path / "out" / labels)
        assert record is not None
        assert record.settings["choice"] in out
        assert set(record.settings["tried"]) == {"both", "classifier", "statistics"}
        assert record.recipe == best(record.settings["tried"], CLEARLY)
        assert "recordings: AUROC" in out


def test_a_network_that_answers_by_chance_where_it_learned_is_failed(
    run, own, small_network, tmp_path
) -> None:  # type: ignore[no-untyped-def]
    status, out, err = run(
        "train", "own", "--model", "rotations", "--epochs", 1, "--ood", "textures-sample", "--out", "out/mine"
    )
    assert status == 0, err
    record = read_training(tmp_path / "out" / "mine")
    assert record is not None
    assert record.training_accuracy is not None
    assert record.training_accuracy < 0.25 + 0.15 * 0.75  # one epoch on noise
    assert "Failed: its network answers no better than chance" in out
    assert user_result(open_stored(tmp_path / "out" / "mine")).failed
    learned = replace(record, training_accuracy=0.6, settings={"class_names": list("ab")})
    assert not learned_nothing(learned)  # four turns to tell apart, whatever classes the files have
    assert learned_nothing(replace(learned, training_accuracy=0.3))
    heard = replace(record, task="block_label", settings={"class_names": list("ab")}, training_accuracy=0.5)
    assert learned_nothing(heard)
    assert not learned_nothing(
        replace(heard, recipe="statistics", settings={**heard.settings, "tried": {"both": {}}})
    )


def test_weak_results_are_said_with_what_to_try(run, own, small_network, tmp_path) -> None:  # type: ignore[no-untyped-def]
    write_pictures(tmp_path / "same kind", random_images(60, 24, seed=5))
    for i in range(48, 60):
        (own / f"{i:03d}.png").unlink()
    status, out, err = run("train", "own", "--ood", "same kind", "--out", "out/mine")
    assert status == 0, err
    before, after = out.split("Expected time")
    assert "with 19 to calibrate, no p-value is below 0.05, so epsilon = 0.05 never flags anything" in before
    assert "Bring at least 50 files" in before
    assert "Weak: With 19 calibration files no p-value is below 0.05" in after
    assert "hardly tells your files from same kind" in out.replace("same-kind", "same kind")
    record = read_training(tmp_path / "out" / "mine")
    assert record is not None
    chance = replace(
        record, validation_accuracy=0.28, settings={"class_names": list("abcd"), "left_out": {"a": 0.5}}
    )
    classes, passing = about_classes(chance)
    assert "On validation files" in classes
    assert "near chance (25%)" in classes
    assert "--labels none" in classes
    assert "Other classes pass as familiar" in passing
    (sounds,) = about_classes(
        replace(
            record,
            validation_accuracy=None,
            calibration_accuracy=0.28,
            settings={"class_names": list("abcd")},
        )
    )
    assert "On calibration files 28%" in sounds
    assert "validation" not in sounds
    good = replace(
        record, validation_accuracy=0.9, settings={"class_names": list("abcd"), "left_out": {"a": 0.9}}
    )
    assert about_classes(good) == []


def test_fifty_files_are_enough_to_flag_at_the_usual_epsilon(own, small_network, tmp_path) -> None:  # type: ignore[no-untyped-def]
    for i in range(50, 60):
        (own / f"{i:03d}.png").unlink()
    plan = plan_folder(own, tmp_path / "out" / "mine", ood=["textures-sample"], runs=tmp_path / "runs")
    assert (plan.too_few, plan.sizes["calibration"]) == ("", 20)
    (own / "000.png").unlink()
    (own / "001.png").unlink()
    fewer = plan_folder(own, tmp_path / "out" / "mine", ood=["textures-sample"], runs=tmp_path / "runs")
    assert "Bring at least 50 files" in fewer.too_few
    assert "all 48 then fit and calibrate" in " ".join(fewer.sentences())
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "runs").exists()  # looking and planning leave nothing behind


def test_the_library_trains_a_folder_in_one_call_and_says_how_far_it_is(own, small_network, tmp_path) -> None:  # type: ignore[no-untyped-def]
    heard: list[tuple[str, int, int]] = []
    trained = train_folder(
        own,
        tmp_path / "out" / "mine",
        ood=["textures-sample"],
        summary="squares",
        runs=tmp_path / "runs",
        report=lambda *step: heard.append(step),
    )
    steps = list(dict.fromkeys(step for step, _, _ in heard))
    assert steps == ["reading", "fitting", "calibrating", "yours-test", "textures-sample"]
    for step in steps:
        done = [count for name, count, _ in heard if name == step]
        assert done == sorted(done)
        assert done[-1] == next(total for name, _, total in heard if name == step)
    assert trained.parts == {"proper": 27, "validation": 0, "calibration": 24, "test": 9}
    assert len(repr(trained)) < 200
    again = load_detector(trained.folder, "cpu")
    np.testing.assert_array_equal(trained.detector.calibration.score_vectors, again.calibration.score_vectors)
    stored = open_stored(trained.folder)
    assert user_result(stored) == trained.result
    low, high = trained.result.against[0].interval
    assert 0 <= low <= trained.result.against[0].auroc <= high <= 1
    card = (trained.folder / "card.md").read_text(encoding="utf-8")
    assert f"{100 * low:.1f} to {100 * high:.1f}" in card
    assert "±" not in card


def test_a_report_that_raises_stops_the_work_and_it_goes_on_later(own, small_network, tmp_path) -> None:  # type: ignore[no-untyped-def]
    def cancel(step: str, done: int, total: int) -> None:
        if step == "calibrating":
            raise KeyboardInterrupt

    options = {"ood": ["textures-sample"], "runs": tmp_path / "runs"}
    with pytest.raises(KeyboardInterrupt):
        train_folder(own, tmp_path / "out" / "mine", report=cancel, **options)
    assert not (tmp_path / "out").exists()
    plan = plan_folder(own, tmp_path / "out" / "mine", **options)
    assert plan.goes_on
    heard: list[str] = []
    assert plan.train(lambda step, done, total: heard.append(step)) is not None
    assert "fitting" in heard  # from what is stored
    assert not plan.goes_on


def test_each_file_is_decoded_once(own, small_network, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from idecode_core.image import read

    opened: list[str] = []
    real = read.read_image

    def counts(source, *, name=""):  # type: ignore[no-untyped-def]
        if isinstance(source, Path):
            opened.append(name)
        return real(source, name=name)

    monkeypatch.setattr(read, "read_image", counts)
    train_folder(own, tmp_path / "out" / "mine", ood=["textures-sample"], runs=tmp_path / "runs")
    assert sorted(opened) == sorted(path.name for path in own.iterdir())


def test_the_test_part_is_a_random_300_of_all_classes_and_nothing_else_is_tested(
    own, small_network, tmp_path, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    """Of 4,000 files in ten classes, 300 random ones: fewer than 10 of a class have a probability below 1e-4."""
    files = [UserFile(Path("x"), f"{i}", f"{i // 400}", f"{i:064d}", 8) for i in range(4000)]
    many = split_user_files(Scan("here", "image", tuple(files), (), (), (), {}))
    assert len(many.test) == 300
    assert np.bincount(many.test // 400, minlength=10).min() >= 10
    trained = train_folder(own, tmp_path / "out" / "mine", ood=["textures-sample"], runs=tmp_path / "runs")
    names = [row["file"] for row in parts_of(trained.folder)["test"]]
    expected = trained.detector.score_vectors([own / name for name in names], n=20)
    np.testing.assert_allclose(open_stored(trained.folder).id_set.score_vectors, expected, rtol=1e-4)
    assert not {row["content"] for row in parts_of(trained.folder)["test"]} & {
        row["content"] for row in parts_of(trained.folder)["calibration"]
    }


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


def test_all_copies_of_a_picture_are_in_one_part(own: Path) -> None:
    for i in range(40):
        (own / f"copy {i}.png").write_bytes((own / f"{i % 7:03d}.png").read_bytes())
    found = scan(own)
    assert (len(found.files), len(found.copies)) == (100, 40)
    for seed in range(5):
        for validates in (True, False):
            split = split_user_files(found, seed, validates=validates)
            parts = [{found.files[i].content for i in indices} for _, indices in split.parts()]
            assert sum(len(indices) for _, indices in split.parts()) == 100
            assert sum(map(len, parts)) == len(set.union(*parts)) == 60
            assert len(parts[1]) == (6 if validates else 0)


def no_signal_detector(folder: Path) -> np.ndarray:
    """A small detector, and the picture of some plain ones that it finds strangest."""
    detector = Detector.calibrate("small", small_scorer(), random_images(30), n_max=2)
    save_detector(detector, folder)
    plain = np.stack([np.full((16, 16, 3), level, np.uint8) for level in range(0, 256, 15)])
    plain = np.concatenate(
        [plain, *(np.where(np.arange(16)[:, None, None] < cut, plain, 255) for cut in (4, 8))]
    )
    return plain[detector.score_vectors(plain, n=2).sum(axis=1).argmax()].astype(np.uint8)


def test_a_source_that_often_sends_the_same_picture_keeps_its_bound(tmp_path: Path) -> None:
    """One frame in eight is the same strange "no signal". Over 20 calibration sets the rate of new frames is at most 0.05 plus four
    standard errors of its mean; with the copies left out it was 17.8 %."""
    strange = no_signal_detector(tmp_path / "small")
    generator, rates = np.random.default_rng(0), []
    for trial in range(20):
        frames = random_images(240, seed=trial + 100)
        frames[generator.random(240) < 1 / 8] = strange
        source = tmp_path / f"frames {trial}"
        write_pictures(source, frames[:80])
        made = calibrate_folder(
            tmp_path / "small",
            source,
            tmp_path / "out" / f"new {trial}",
            n_max=2,
            device="cpu",
            ood=["digits-sample"],
        )
        assert made.detector.calibration.k == 80
        rates.append(made.detector.detect(frames[80:], n=2).is_ood.mean())
    assert np.mean(rates) <= 0.05 + 4 * np.std(rates) / np.sqrt(len(rates))
    assert np.mean(rates) < 0.1


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


def test_few_pictures_judge_new_ones_at_once(run, small_network, own, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """All 60 fit and calibrate: p-values counted here by the distance from the fifth nearest of all others."""
    write_pictures(
        tmp_path / "new",
        np.concatenate([random_images(3, 24)[:, ::-1], np.full((1, 24, 24, 3), 255, np.uint8)]),
    )
    status, out, err = run("train", "own", "--judge", "new", "--json")
    assert status == 0, err
    found = {row["file"]: row["p_value"] for row in map(json.loads, out.splitlines())}
    seen = fitting.features_of(planning.Plan("neighbours", 32, ""), torch.device("cpu"))
    known, new = (
        seen.encode(
            [np.asarray(Image.open(path)) for path in sorted((tmp_path / name).iterdir())], n=5, seed=1
        ).mean(dim=1)
        for name in ("own", "new")
    )
    for place, name in enumerate(sorted(path.name for path in (tmp_path / "new").iterdir())):
        bag = torch.cat([known, new[place : place + 1]]).double()
        fifth = (bag[:, None] - bag).norm(dim=2).sort(dim=1).values[:, 5]  # the nearest is the point itself
        assert found[name] == pytest.approx(float((fifth >= fifth[-1]).double().mean()))
    status, out, _ = run("train", "own", "--judge", "new", "--epsilon", "0.1")
    assert status == 0
    assert "with probability at most 0.1; all 60 images fit and calibrate" in out
    assert "Not promised" in out
    plan = plan_folder(own, tmp_path / "out" / "mine", ood=["textures-sample"], runs=tmp_path / "runs")
    assert any(
        "`train --judge NEW`" in sentence and "0.016, not 0.04" in sentence for sentence in plan.sentences()
    )


def test_few_sounds_judge_new_ones_at_once(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    generator = np.random.default_rng(0)
    for folder, name, count in (("heard", "noise", 25), ("new", "claps", 2)):
        (tmp_path / folder).mkdir()
        for i in range(count):
            soundfile.write(
                tmp_path / folder / f"{i}.wav", MAKERS[name](0.5, 16_000, generator=generator), 16_000
            )
    status, out, err = run("train", "heard", "--audio", "--judge", "new", "--json")
    assert status == 0, err
    assert [json.loads(line)["p_value"] for line in out.splitlines()] == [pytest.approx(1 / 26)] * 2


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
