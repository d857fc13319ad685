"""Runs of training do not mix: each has a folder of its own, one process at a time, and scores what its list of files says."""

# ruff: noqa: F811  `run` and others are fixtures of other files
import csv
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image
from small import random_images
from test_commands import run, tiny_recipe  # noqa: F401  fixtures
from test_train_folder import small_network, write_pictures  # noqa: F401  a fixture

from idecode_core import train_folder
from idecode_core.draws import content_hash
from idecode_core.errors import TrainingError
from idecode_core.folder.detector import load_detector
from idecode_core.image.read import read_image
from idecode_core.scorers.features import Features, FeatureScorer
from idecode_core.training import fit_distance as fitting
from idecode_core.training import plan as planning
from idecode_core.training import train_folder as own_data
from idecode_core.training import user_files
from idecode_core.training.run_state import World, held, run_folder
from idecode_core.training.user_files import scan
from tools.synthetic_sounds import MAKERS


def calibrated_on(made: Path, source: Path) -> tuple[np.ndarray, np.ndarray]:
    """The stored calibration, and the same rows from the files that files.csv lists, found by their content."""
    by_content = {content_hash(read_image(path)): path for path in source.rglob("*.png")}
    with (made / "files.csv").open(encoding="utf-8", newline="") as file:
        listed = [row["content"] for row in csv.DictReader(file) if row["part"] == "calibration"]
    detector = load_detector(made, "cpu")
    again = detector.score_vectors([by_content[content] for content in listed], n=20)
    return detector.calibration.score_vectors, again


def test_two_trainings_of_one_name_at_the_same_time_do_not_mix(
    run, small_network, tmp_path, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    """Both are past their beginning; then the one runs ahead to its end before the other goes on."""
    monkeypatch.setattr(fitting, "PIECE", 8)
    network = fitting.pretrained()
    monkeypatch.setattr(fitting, "pretrained", lambda: network)
    begun, ahead = threading.Barrier(2, timeout=60), threading.Event()
    fitted, scored = fitting.fit, own_data.score_tests

    def begins(*plan: Any) -> Any:
        begun.wait()
        if threading.current_thread().name == "second":
            assert ahead.wait(60)
        return fitted(*plan)

    def scores(*job: Any) -> None:
        ahead.set()
        scored(*job)

    monkeypatch.setattr(fitting, "fit", begins)
    monkeypatch.setattr(own_data, "score_tests", scores)
    failures: list[BaseException] = []

    def trains(name: str) -> None:
        out = tmp_path / f"made by {name}" / "mine"
        try:
            train_folder(tmp_path / name, out, ood=["textures-sample"], device="cpu", runs=tmp_path / "runs")
        except BaseException as error:
            failures.append(error)
            ahead.set()

    threads = []
    for seed, name in enumerate(("first", "second")):
        write_pictures(tmp_path / name, random_images(60, 24, seed=seed))
        threads.append(threading.Thread(target=trains, args=(name,), name=name))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for name in ("first", "second"):
        stored, again = calibrated_on(tmp_path / f"made by {name}" / "mine", tmp_path / name)
        np.testing.assert_allclose(stored, again, rtol=1e-4)


@pytest.mark.parametrize(
    ("model", "part"),
    [
        ("mahalanobis", "proper"),
        ("mahalanobis", "calibration"),
        ("mahalanobis", "test"),
        ("rotations", "proper"),
        ("rotations", "validation"),
        ("rotations", "calibration"),
        ("classifier", "calibration"),
    ],
)
def test_a_file_that_changes_after_it_was_listed_stops_the_run(
    run, small_network, tmp_path, monkeypatch, model, part
) -> None:  # type: ignore[no-untyped-def]
    sounds = model == "classifier"
    monkeypatch.setattr(user_files, "KEPT_BYTES", 0)  # else what was listed is still there
    (tmp_path / "own").mkdir()
    generator = np.random.default_rng(0)
    if sounds:
        for i in range(44):
            soundfile.write(
                tmp_path / "own" / f"{i}.wav", MAKERS["tone"](0.4, 16_000, generator=generator), 16_000
            )
    else:
        write_pictures(tmp_path / "own", random_images(60, 24))
    chosen, changed = planning.choose, []

    def choose(found, own, *more):  # type: ignore[no-untyped-def]
        file = found.files[dict(own.parts())[part][-1]]
        if sounds:
            soundfile.write(file.path, MAKERS["noise"](0.4, 16_000, generator=generator), 16_000)
        else:
            Image.fromarray(random_images(1, 24, seed=9)[0]).save(file.path)
        changed.append(file.name)
        return chosen(found, own, *more)

    monkeypatch.setattr(planning, "choose", choose)
    more = ("--audio",) if sounds else ("--ood", "textures-sample")
    length = ("--epochs", 1) if model != "mahalanobis" else ()
    status, _, err = run("train", "own", "--model", model, "--out", "out/mine", *more, *length)
    assert status == 2, err
    (sentence,) = [line for line in err.splitlines() if "changed" in line]
    assert changed[0] in sentence
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_files_that_do_not_belong_must_stay_as_they_were_too(
    run, small_network, tmp_path, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    write_pictures(tmp_path / "own", random_images(60, 24))
    write_pictures(tmp_path / "other", random_images(5, 24, seed=1))
    monkeypatch.setattr(user_files, "KEPT_BYTES", 0)
    scored = own_data.score_tests

    def scores(*job: Any) -> None:
        Image.fromarray(random_images(1, 24, seed=9)[0]).save(tmp_path / "other" / "003.png")
        scored(*job)

    monkeypatch.setattr(own_data, "score_tests", scores)
    status, _, err = run("train", "own", "--ood", "other", "--out", "out/mine")
    assert status == 2
    assert "003.png: changed" in err
    assert not (tmp_path / "out").exists()


def test_a_piece_of_other_contents_is_scored_again(run, small_network, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(fitting, "PIECE", 8)
    write_pictures(tmp_path / "own", random_images(60, 24))
    arguments = ("train", "own", "--ood", "textures-sample", "--out")
    assert run(*arguments, "out/whole")[0] == 0
    real, seen = FeatureScorer.score, []

    def stops(self, samples, **more):  # type: ignore[no-untyped-def]
        seen.append(len(samples))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return real(self, samples, **more)

    monkeypatch.setattr(FeatureScorer, "score", stops)
    assert run(*arguments, "out/again")[0] != 0
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if path.name.startswith("again"))
    first, second = sorted((folder / "calibrating").iterdir())
    shutil.copy(first, second)
    assert run(*arguments, "out/again")[0] == 0
    whole, again = (load_detector(tmp_path / "out" / name, "cpu") for name in ("whole", "again"))
    np.testing.assert_array_equal(whole.calibration.score_vectors, again.calibration.score_vectors)
    assert seen[3] == 8  # the second piece, and not the first
    assert not (folder / "calibrating").exists()


def test_a_run_of_other_settings_has_another_folder(run, small_network, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """All that determines the detector: a stored one is never taken for what was asked now."""
    write_pictures(tmp_path / "own" / "a", random_images(30, 24))
    write_pictures(tmp_path / "own" / "b", random_images(30, 24, seed=1))
    write_pictures(tmp_path / "other", random_images(5, 24, seed=2))
    wishes: list[tuple[object, ...]] = [
        (),
        ("--seed", 1),
        ("--labels", "none"),
        ("--model", "neighbours"),
        ("--summary", "mine"),
        ("--ood", "other"),
    ]
    for wish in wishes:
        assert run("train", "own", "--out", "mine", "--replace", *wish)[0] == 0
    Image.fromarray(random_images(1, 24, seed=3)[0]).save(tmp_path / "other" / "000.png")
    assert run("train", "own", "--out", "mine", "--replace", "--ood", "other")[0] == 0
    assert len(list((tmp_path / "runs").iterdir())) == len(wishes) + 1
    assert run("train", "own", "--out", "mine", "--replace")[0] == 0
    assert len(list((tmp_path / "runs").iterdir())) == len(wishes) + 1


def test_a_recipe_on_other_data_of_the_same_name_does_not_go_on_with_the_run(
    run, tiny_recipe, tmp_path
) -> None:  # type: ignore[no-untyped-def]
    arguments = ("train", "tiny", "--device", "cpu", "--out", "mine", "--replace")
    assert run(*arguments)[0] == 0
    before = load_detector(tmp_path / "mine", "cpu").calibration.score_vectors
    np.savez(tmp_path / "data" / "tiny-train.npz", x=random_images(80, seed=81), y=np.arange(80) % 4)
    assert run(*arguments)[0] == 0
    assert run("train", "tiny", "--device", "cpu", "--out", "other")[0] == 0
    mine, other = (
        load_detector(tmp_path / name, "cpu").calibration.score_vectors for name in ("mine", "other")
    )
    np.testing.assert_array_equal(mine, other)  # as if nothing had been there before
    assert not np.array_equal(mine, before)


def test_the_same_training_twice_at_once_is_refused_in_one_sentence(
    run, tiny_recipe, tmp_path, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    from idecode_core.training import finish as command

    arguments = ("train", "tiny", "--device", "cpu", "--epochs", 1, "--out", "mine")
    real, seen = command.train_and_finish, []

    def twice(*task: Any, **more: Any) -> Any:
        if not seen:
            seen.append("first")
            seen.append(run(*arguments))
        return real(*task, **more)

    monkeypatch.setattr(command, "train_and_finish", twice)
    assert run(*arguments)[0] == 0
    status, _, err = seen[1]
    assert status == 2
    assert "in use by process" in err
    assert "another --out" in err
    assert load_detector(tmp_path / "mine", "cpu").calibration.k == 8


def test_a_killed_process_holds_no_lock(tmp_path: Path) -> None:
    script = """
        import sys, time
        from pathlib import Path
        from idecode_core.training.run_state import World, held
        with held(Path(sys.argv[1]), World()):
            print("held", flush=True)
            time.sleep(600)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        try:
            assert other.stdout.readline() == "held\n"
            with pytest.raises(TrainingError, match=f"in use by process {other.pid} on "):
                held(tmp_path / "run", World()).__enter__()
        finally:
            other.kill()
    for _ in range(2):  # and one that ends lets go of it
        with held(tmp_path / "run", World()):
            pass


def test_a_folder_follows_from_its_work_and_from_nothing_else(tmp_path: Path) -> None:
    folders = {run_folder(tmp_path, "mine", {"seed": seed, "files": "ab"}) for seed in (0, 1, 0)}
    assert len(folders) == 2
    assert run_folder(tmp_path, "mine", {"files": "ab", "seed": 0}) in folders


def test_listed_files_are_scored_as_their_paths_are(tmp_path: Path, small_network) -> None:  # type: ignore[no-untyped-def]
    """The same draws: nothing but the check was added."""
    write_pictures(tmp_path / "own", random_images(6, 30))
    found = scan(tmp_path / "own")
    seen = Features(
        model=fitting.pretrained(),
        transforms=fitting.SmallAffine(),
        preprocessing=fitting.Preprocessing(32),
    )
    for seed in (0, 1):
        by_path = seen.encode([file.path for file in found.files], n=3, seed=seed)
        assert torch.equal(seen.encode(found.listed(range(6)), n=3, seed=seed), by_path)
