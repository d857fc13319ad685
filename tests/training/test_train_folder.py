"""A user's own files become a detector: what is left out, how the parts are cut, what is said, and what it flags."""

# ruff: noqa: F811  `run` is a fixture of another file
import csv
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image
from sklearn.metrics import roc_auc_score
from small import random_images, small_scorer
from test_commands import run  # noqa: F401  a fixture

from idecode_core import calibrate_folder, plan_folder, train_folder
from idecode_core.detector import Detector
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.record import read_split, read_training
from idecode_core.folder.stored import open_stored
from idecode_core.image.sets import load_images
from idecode_core.models import ModelConfig
from idecode_core.quality.user_data import user_result
from idecode_core.scorers.features import Features, Frozen
from idecode_core.training import fit_distance as fitting
from idecode_core.training import plan as planning
from idecode_core.training import user_files
from idecode_core.training.choice import best
from idecode_core.training.fit_sounds import CLEARLY
from idecode_core.training.user_files import Scan, UserFile
from idecode_core.training.user_parts import split_user_files
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
            "none beside them, got 50 files in no subfolder. Use",
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
