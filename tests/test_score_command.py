"""`idecode score`: many files, killed and resumed, by one worker or several: always the same scores, each file once."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from small import random_images, small_scorer

from idecode_core import modality
from idecode_core.cli import detect as detecting
from idecode_core.cli.app import main
from idecode_core.detector import Detector
from idecode_core.errors import InputError, SettingError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.scale import run as running
from idecode_core.scale.cluster import ReadActor, ScoreActor
from idecode_core.scale.files import find_files, parts, read_part, write_list
from idecode_core.scale.run import open_parts, open_run, score_alone

FILES = 23
PART = 5
SETTINGS = {"n": 3, "epsilon": 0.2, "seed": 0, "aggregate": "sum", "part_size": PART}


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    """A folder with a small detector, pictures whose names are a nuisance, files that are no pictures, and a circle."""
    root = tmp_path_factory.mktemp("world")
    save_detector(Detector.calibrate("tiny", small_scorer(), random_images(30), n_max=3), root / "tiny")
    pictures = root / "pictures"
    (pictures / "deep er").mkdir(parents=True)
    for i, pixels in enumerate(random_images(FILES, seed=1)):
        folder = pictures / "deep er" if i % 3 else pictures
        Image.fromarray(pixels).save(folder / f"bild {i:02d} ä\n.png")
    (pictures / "b broken.png").write_text("no picture")
    (pictures / "notes.txt").write_text("not looked at")
    (pictures / "deep er" / "circle").symlink_to(pictures)
    return root


@pytest.fixture
def command(capsys, monkeypatch, world):
    monkeypatch.chdir(world)

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


def arguments(out: Path, *more: object) -> list[object]:
    return [
        "score",
        "pictures",
        "--out",
        out,
        "-d",
        "tiny",
        "--n",
        3,
        "--epsilon",
        0.2,
        "--part",
        PART,
        *more,
    ]


@pytest.fixture(scope="module")
def unbroken(world, tmp_path_factory) -> Path:
    """The scores of one process that nobody disturbs."""
    out = tmp_path_factory.mktemp("unbroken")
    here = Path.cwd()
    os.chdir(world)
    try:
        job = open_run(Path("pictures"), out, world / "tiny", (".png",), **SETTINGS)
        assert score_alone(out, job, open_parts(out, job), "cpu", lambda _: None) == FILES + 1
    finally:
        os.chdir(here)
    return out


def rows(out: Path) -> list[dict]:
    return pq.read_table(out).to_pylist()


def test_every_file_has_the_scores_that_the_detector_gives_it(world, unbroken):
    found = {row["file"]: row for row in rows(unbroken)}
    paths = sorted((world / "pictures").rglob("bild*.png"))
    assert len(found) == FILES + 1 == len(paths) + 1
    expected = load_detector(world / "tiny", "cpu").detect(paths, n=3, epsilon=0.2)
    for path, verdict, vector in zip(paths, expected, expected.score_vectors, strict=True):
        row = found[str(path.relative_to(world))]
        np.testing.assert_allclose(row["score_vector"], vector, rtol=1e-5)
        assert row["p_value"] == verdict.p_value
        assert row["is_ood"] == verdict.is_ood
        assert row["score"] == pytest.approx(verdict.score)
        assert row["error"] is None
    broken = found["pictures/b broken.png"]
    assert "is not an image" in broken["error"]
    assert (broken["p_value"], broken["is_ood"], broken["score_vector"]) == (None, None, None)


def test_a_killed_run_goes_on_and_equals_an_unbroken_one(world, unbroken, command, tmp_path):
    out = tmp_path / "scores"
    script = (
        "import os, signal, sys\nfrom idecode_core.cli.app import main\nfrom idecode_core.scale import part\n"
        "write, written = part.write_atomically, []\n"
        "def write_or_die(path, fill):\n"
        "    if len(written) == 2: fill(path.with_name('.half.part')); os.kill(os.getpid(), signal.SIGKILL)\n"
        "    written.append(path); write(path, fill)\n"
        "part.write_atomically = write_or_die\nmain(sys.argv[1:])\n"
    )
    words = [str(word) for word in arguments(out, "--workers", 1)]
    killed = subprocess.run([sys.executable, "-c", script, *words], cwd=world, check=False)
    assert killed.returncode == -signal.SIGKILL
    before = {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.glob("part-*")}
    assert len(before) == 2
    status, text, err = command(*arguments(out, "--workers", 1))
    assert status == 0
    assert f"{2 * PART} of {FILES + 1} files were scored before" in err
    assert f"{FILES + 1} files in 5 parts" in text
    assert f"{FILES + 1 - 2 * PART} of them now" in text
    after = {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.glob("part-*")}
    assert before.items() <= after.items()  # what was done is not done again
    assert pq.read_table(out).equals(pq.read_table(unbroken))
    status, text, _ = command(*arguments(out, "--workers", 1))
    assert (status, "0 of them now" in text) == (0, True)


def test_two_workers_of_ray_give_the_same_bits_as_one_process(unbroken, command, tmp_path):
    status, text, _ = command(*arguments(tmp_path / "scores", "--workers", 2))
    assert status == 0
    assert f"{FILES + 1} files in 5 parts" in text
    assert pq.read_table(tmp_path / "scores").equals(pq.read_table(unbroken))


def test_reading_and_scoring_apart_as_with_gpus_gives_the_same_bits(world, unbroken, tmp_path, monkeypatch):
    monkeypatch.chdir(world)
    job = open_run(Path("pictures"), tmp_path, world / "tiny", (".png",), **SETTINGS)
    reader, scorer = ReadActor(str(tmp_path), job), ScoreActor(str(tmp_path), job, "cpu")
    for part in open_parts(tmp_path, job):
        assert scorer(reader(vars(part)))["files"] == part.count
    assert pq.read_table(tmp_path).equals(pq.read_table(unbroken))


def test_files_may_come_from_a_list(world, command, tmp_path):
    names = [f"pictures/bild {i:02d} ä\n.png" for i in (3, 0)]
    (tmp_path / "list.csv").write_text(
        "label,file\n" + "".join(f'x,"{name}"\n' for name in names) + "y,nowhere.png\n"
    )
    status, _, _ = command(
        "score", tmp_path / "list.csv", "--out", tmp_path / "a", "-d", "tiny", "--n", 3, "--workers", 1
    )
    assert status == 0
    assert [row["file"] for row in rows(tmp_path / "a")] == [*names, "nowhere.png"]
    assert "could not be opened" in rows(tmp_path / "a")[2]["error"]
    (tmp_path / "list.txt").write_text("pictures/b broken.png\nnowhere.png\n")
    status, text, _ = command(
        "score", tmp_path / "list.txt", "--out", tmp_path / "b", "-d", "tiny", "--n", 3, "--workers", 1
    )
    assert (status, "2 without a score" in text) == (0, True)


def test_a_run_with_other_settings_is_not_mixed_in(unbroken, command):
    for more in (["--seed", 1], ["--n", 2], ["--epsilon", 0.3], ["--delta", 0.1], ["--part", 6]):
        status, _, err = command(*arguments(unbroken, "--workers", 1, *more))
        assert status == 2
        assert "holds a run with another" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "There is no nowhere"),
        (["tiny/config.json"], "expected a folder of files, or a list"),
        (["empty"], "expected files of type .png"),
        (["pictures", "--n", "4"], "n must lie between 1 and 3"),
        (["pictures", "--workers", "0"], "at least one worker"),
        (["pictures", "--part", "0"], "at least one file"),
        (["list.csv"], "expected a column called file or path"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence, world, command, tmp_path):
    (world / "empty").mkdir(exist_ok=True)
    (world / "list.csv").write_text("a,b\n1,2\n")
    status, out, err = command(
        "score", *words, "--out", tmp_path / "scores", "-d", "tiny", *([] if "--n" in words else ["--n", 3])
    )
    assert (status, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err


def test_a_list_keeps_any_name_and_its_parts_cover_it_once(tmp_path):
    names = [f"a{i}\n\u2028\udce4.png" for i in range(7)]
    assert write_list(tmp_path, names) == 7
    found = [read_part(tmp_path, part) for part in parts(tmp_path, 3)]
    assert [len(chunk) for chunk in found] == [3, 3, 1]
    assert [name for chunk in found for name in chunk] == names


def test_a_folder_is_walked_in_one_order_without_following_circles(world):
    found = list(find_files(world / "pictures", (".png",)))
    assert len(found) == len(set(found)) == FILES + 1
    assert found == list(find_files(world / "pictures", (".png",)))
    with pytest.raises(InputError):
        find_files(world / "nowhere", (".png",))


def test_several_workers_without_ray_are_told_what_is_missing(monkeypatch, command, tmp_path):
    monkeypatch.setattr("idecode_core.cli.score.find_spec", lambda name: None)
    status, _, err = command(*arguments(tmp_path / "scores", "--workers", 2))
    assert (status, "idecode-studio[scale]" in err) == (2, True)
    status, text, _ = command(*arguments(tmp_path / "scores"))  # in one process then
    assert (status, "5 parts" in text) == (0, True)


def test_where_nobody_watches_a_line_now_and_then_says_how_long_it_takes(monkeypatch, command, tmp_path):
    monkeypatch.setattr("idecode_core.cli.score.SECONDS_BETWEEN_LINES", 0.0)
    _, _, err = command(*arguments(tmp_path / "scores", "--workers", 1))
    assert re.search(rf"{2 * PART} of {FILES + 1} files, [\d,]+ per second, \d+ min left", err)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--workers", "2"), "Ray did not start on this machine (The current node timed out). Try again"),
        (
            ("--address", "10.0.0.1:6379"),
            "No Ray cluster answers at 10.0.0.1:6379 (The current node timed out).",
        ),
    ],
)
def test_a_ray_that_does_not_start_is_one_sentence_and_one_process_goes_on(
    monkeypatch, command, tmp_path, options, words
):
    """On a machine that is too busy it gives up after a while, with an error of no class of its own."""

    def give_up(**_):
        raise Exception("The current node timed out\nand many lines more")

    monkeypatch.setattr("ray.init", give_up)
    status, _, err = command(*arguments(tmp_path / "out", *options))
    assert (status, "Traceback" in err) == (2, False)
    assert words in err
    assert "many lines more" not in err
    status, out, _ = command(*arguments(tmp_path / "out", "--workers", 1))
    assert (status, "24 files" in out) == (0, True)


def test_few_files_do_not_wait_for_ray(monkeypatch, command, tmp_path):
    monkeypatch.setattr(
        "idecode_core.scale.cluster.score_on_ray", lambda *a, **k: pytest.fail("Ray was started")
    )
    status, text, _ = command("score", "pictures", "--out", tmp_path / "scores", "-d", "tiny", "--n", 3)
    assert (status, "in 1 parts" in text) == (0, True)


def test_a_broken_run_file_is_one_sentence(tmp_path, world):
    (tmp_path / running.RUN).write_text("{}")
    with pytest.raises(SettingError, match="holds a run with another"):
        open_run(world / "pictures", tmp_path, world / "tiny", (".png",), **SETTINGS)


def test_detect_prints_its_lines_as_they_are_ready(world, monkeypatch, capsys):
    """When the fifth file is read, the first four have been answered."""
    monkeypatch.chdir(world)
    monkeypatch.setattr(detecting, "FILES_PER_BATCH", 2)
    pictures = modality.modality_named("image")
    seen: list[int] = []
    answered = 0

    def watched(path: Path, name: str) -> object:
        nonlocal answered
        answered += len(capsys.readouterr().out.splitlines())
        seen.append(answered)
        return pictures.read(path, name)

    monkeypatch.setattr(modality, "modality_named", lambda _: replace(pictures, read=watched))
    files = sorted(str(path) for path in (world / "pictures" / "deep er").glob("*.png"))[:5]
    with pytest.raises(SystemExit):
        main(["detect", *files, "-d", "tiny", "--n", "3", "--epsilon", "0.2", "--json"])
    assert seen == [0, 0, 2, 2, 4]
