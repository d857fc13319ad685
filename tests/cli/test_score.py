"""`idecode score`: many files, killed and resumed, by one worker or several: always the same scores, each file once."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet as pq
import pytest
from PIL import Image
from small import random_images, small_scorer

from idecode_core.cli.app import main
from idecode_core.detector import Detector
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.scale import run as running
from idecode_core.scale.part import write_part
from idecode_core.scale.run import ScoredFiles, score_files

FILES = 23
PART = 5
SETTINGS = {"n": 3, "epsilon": 0.2}


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    """Five files are scored together, so that few files make many parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "BLOCK", PART)
        yield


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
        "--save-every",
        0,
        *more,
    ]


@pytest.fixture(scope="module")
def unbroken(world, tmp_path_factory) -> Path:
    """The scores of one process that nobody disturbs."""
    out = tmp_path_factory.mktemp("unbroken")
    here = Path.cwd()
    os.chdir(world)
    try:
        assert scored(out).now == FILES + 1
    finally:
        os.chdir(here)
    return out


def scored(out: Path, tell=lambda sentence: None, **more) -> ScoredFiles:
    """The same run by one library call."""
    return score_files(
        "pictures", out, "tiny", **SETTINGS, workers=1, seconds=0, device="cpu", tell=tell, **more
    )


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


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "There is no nowhere"),
        (["tiny/config.json"], "expected a folder of files, or a list"),
        (["empty"], "expected files of type .png"),
        (["pictures", "--n", "4"], "n must lie between 1 and 3"),
        (["pictures", "--workers", "0"], "at least one worker"),
        (["pictures", "--save-every", "-1"], "must be 0 or more"),
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


def test_where_nobody_watches_a_line_now_and_then_says_how_long_it_takes(monkeypatch, command, tmp_path):
    monkeypatch.setattr("idecode_core.cli.score.SECONDS_BETWEEN_LINES", 0.0)
    _, _, err = command(*arguments(tmp_path / "scores", "--workers", 1))
    assert re.search(rf"{2 * PART} of {FILES + 1} files, [\d,.]+ per second, \d+ (s|min) left", err)


def first_part(out: Path) -> Path:
    return sorted(out.glob("part-*"))[0]


def flip(path: Path, place: float = 0.5) -> None:
    data = bytearray(path.read_bytes())
    data[int(place * (len(data) - 1))] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def of_another_run(out: Path, **settings: object) -> None:
    """Its parts come from a run of the same files that has other settings; names and bytes of them are sound."""
    other = out.with_name("other")
    score_files(**{"source": "pictures", "out": other, "detector": "tiny", **SETTINGS, "workers": 1, "seconds": 0, **settings})  # fmt: skip
    first_part(out).unlink()
    shutil.copy(first_part(other), out)


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "mine.txt").write_text("not to be lost")


def edit_job(out: Path, **changes: object) -> None:
    stored = json.loads((out / "_run.json").read_text())
    (out / "_run.json").write_text(json.dumps({**stored, **changes}))


def older_rows(out: Path) -> None:
    """A part that is sound and of this run, with rows that belong to other files of the list."""
    paths = sorted(out.glob("part-*"))
    table = pq.read_table(paths[0])
    job = running.read_job(out, "")
    lines = (out / "_files.jsonl").read_bytes().splitlines(keepends=True)
    paths[1].unlink()
    write_part(out, job, PART, lines[:PART], table)


def swap(out: Path) -> None:
    a, b, *_ = sorted(out.glob("part-*"))
    first, second = a.read_bytes(), b.read_bytes()
    a.write_bytes(second)
    b.write_bytes(first)


def two_that_overlap(out: Path) -> None:
    """Both are sound and of this run, as after two processes that could not lock the folder."""
    tables = [pq.read_table(path) for path in sorted(out.glob("part-*"))[:2]]
    lines = (out / "_files.jsonl").read_bytes().splitlines(keepends=True)
    write_part(out, running.read_job(out, ""), 0, lines[: 2 * PART], pyarrow.concat_tables(tables))


LIST, RUN = "_files.jsonl", "_run.json"
DAMAGES = {
    "a cut list": lambda out: cut(out / LIST),
    "a list without its last line": lambda out: (out / LIST).write_bytes(
        b"".join((out / LIST).read_bytes().splitlines(keepends=True)[:-1])
    ),
    "no list": lambda out: (out / LIST).unlink(),
    "an empty list": lambda out: (out / LIST).write_bytes(b""),
    "a list with other columns": lambda out: (out / LIST).write_text('{"path": "a.png", "label": 1}\n' * 24),
    "a list of garbage": lambda out: (out / LIST).write_bytes(bytes(range(256)) * 9),
    "a list in another order": lambda out: (out / LIST).write_bytes(
        b"".join(sorted((out / LIST).read_bytes().splitlines(keepends=True), reverse=True))
    ),
    "a flipped byte in the list": lambda out: flip(out / LIST),
    "a folder in place of the list": lambda out: folder_instead(out / LIST),
    "a cut part": lambda out: cut(first_part(out)),
    "an empty part": lambda out: first_part(out).write_bytes(b""),
    "a part of garbage": lambda out: first_part(out).write_bytes(bytes(range(256)) * 30),
    "a flipped byte in the middle of a part": lambda out: flip(first_part(out)),
    "a flipped byte in the foot of a part": lambda out: flip(first_part(out), 0.97),
    "a part that is gone": lambda out: first_part(out).unlink(),
    "a folder in place of a part": lambda out: folder_instead(first_part(out)),
    "a part copied over another": lambda out: shutil.copy(first_part(out), sorted(out.glob("part-*"))[1]),
    "a part copied beside itself": lambda out: shutil.copy(first_part(out), out / "part copy.parquet"),
    "a part twice under two numbers": lambda out: shutil.copy(
        first_part(out), out / first_part(out).name.replace("part-0000000000", "part-0000000007")
    ),
    "two parts that have changed places": swap,
    "a part of other rows": older_rows,
    "a part that overlaps others": two_that_overlap,
    "a part of a run with another seed": lambda out: of_another_run(out, seed=1),
    "a part of a run with another n": lambda out: of_another_run(out, n=2),
    "a part of another detector": lambda out: of_another_run(out, detector="other"),
    "a part of other files": lambda out: of_another_run(out, source="pictures/deep er"),
    "a dangling link in place of a part": lambda out: (
        first_part(out).unlink(),
        (out / f"part-0000000000-{'0' * 32}.parquet").symlink_to("nowhere"),
    ),
    "a pipe in place of a part": lambda out: (
        first_part(out).unlink(),
        os.mkfifo(out / f"part-0000000000-{'0' * 32}.parquet"),
    ),
    "no job": lambda out: (out / RUN).unlink(),
    "an empty job": lambda out: (out / RUN).write_bytes(b""),
    "a job of garbage": lambda out: (out / RUN).write_bytes(b"\xff\x00{"),
    "a job that is no table": lambda out: (out / RUN).write_text("[1, 2]"),
    "a job with nothing in it": lambda out: (out / RUN).write_text("{}"),
    "a folder in place of the job": lambda out: folder_instead(out / RUN),
    "a job with wrong types": lambda out: edit_job(out, n="three", files=[24], block=None),
    "a job with more": lambda out: edit_job(out, more=1),
    "a job with fewer files": lambda out: edit_job(out, files=3),
    "a job of another epsilon": lambda out: edit_job(out, epsilon=0.5),
    "everything but the parts gone": lambda out: [path.unlink() for path in out.glob("_*")],
    "everything of garbage": lambda out: [path.write_bytes(b"garbage") for path in out.iterdir()],
}


@pytest.fixture
def copied(world, unbroken, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(world)
    if not (world / "other").exists():
        other = Detector.calibrate("other", small_scorer(), random_images(30, seed=7), n_max=3)
        save_detector(other, world / "other")
    return Path(shutil.copytree(unbroken, tmp_path / "scores"))
