"""`idecode score`: many files, killed and resumed, by one worker or several: always the same scores, each file once."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
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
from idecode_core.scale.files import Stretch, find_files, list_sha256, names_in, read_lines, write_list
from idecode_core.scale.judged import judge_scored
from idecode_core.scale.part import PART_NAME, write_part
from idecode_core.scale.run import Scored, look_at, open_run, score_files

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


def scored(out: Path, tell=lambda sentence: None, **more) -> Scored:
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


def test_a_killed_run_goes_on_and_equals_an_unbroken_one(world, unbroken, command, tmp_path):
    out = tmp_path / "scores"
    script = (
        "import os, signal, sys\nfrom idecode_core.cli.app import main\nfrom idecode_core.scale import part, run\n"
        f"run.BLOCK = {PART}\n"
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


def test_two_workers_of_ray_give_the_same_bits_as_one_process_and_ray_says_nothing(world, unbroken, tmp_path):
    script = (
        "import sys\nfrom idecode_core.cli.app import main\nfrom idecode_core.scale import run\n"
        f"run.BLOCK = {PART}\nmain(sys.argv[1:])\n"
    )
    words = [str(word) for word in arguments(tmp_path / "scores", "--workers", 2)]
    ran = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=world, capture_output=True, text=True, check=True
    )
    assert f"{FILES + 1} files in 5 parts" in ran.stdout
    assert [line for line in ran.stderr.splitlines() if not line.startswith("idecode: ")] == []
    assert pq.read_table(tmp_path / "scores").equals(pq.read_table(unbroken))


def test_reading_and_scoring_apart_as_with_gpus_gives_the_same_bits(world, unbroken, tmp_path, monkeypatch):
    monkeypatch.chdir(world)
    job = open_run(
        Path("pictures"),
        tmp_path,
        world / "tiny",
        **SETTINGS,
        delta=None,
        seed=0,
        aggregate="sum",
        tell=print,
    )
    reader, scorer = ReadActor(str(tmp_path), job, {}), ScoreActor(str(tmp_path), job, "cpu", 0, {})
    stretches = look_at(tmp_path, job, 2 * PART).todo
    assert [stretch.count for stretch in stretches] == [10, 10, 4]
    for stretch in stretches:
        assert scorer(reader(vars(stretch)))["files"] == stretch.count
    assert pq.read_table(tmp_path).equals(pq.read_table(unbroken))
    written = sorted(tmp_path.iterdir())
    (written[3]).unlink()  # as if a worker was lost after the first of the two parts of its stretch
    assert PART_NAME.fullmatch(written[3].name)
    assert scorer(vars(stretches[0]))["files"] == 10
    assert sorted(tmp_path.iterdir()) == written
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
    for more in (["--seed", 1], ["--n", 2], ["--epsilon", 0.3], ["--delta", 0.1], ["--aggregate", "max"]):
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


def test_a_list_keeps_any_name_and_its_parts_cover_it_once(tmp_path):
    names = [f"a{i}\n\u2028\udce4.png" for i in range(7)]
    count, digest = write_list(tmp_path, names)
    assert (count, digest) == (7, list_sha256(tmp_path))
    lines = read_lines(tmp_path, Stretch(0, 0, 7))
    assert names_in(lines) == names
    assert names_in(read_lines(tmp_path, Stretch(3, sum(map(len, lines[:3])), 3))) == names[3:6]


def test_a_folder_is_walked_in_one_order_without_following_circles(world):
    found = list(find_files(world / "pictures", (".png",), print))
    assert len(found) == len(set(found)) == FILES + 1
    assert found == list(find_files(world / "pictures", (".png",), print))
    with pytest.raises(InputError):
        find_files(world / "nowhere", (".png",), print)


def test_several_workers_without_ray_are_told_what_is_missing(monkeypatch, command, tmp_path):
    monkeypatch.setattr("idecode_core.scale.run.find_spec", lambda name: None)
    status, _, err = command(*arguments(tmp_path / "scores", "--workers", 2))
    assert (status, "idecode-studio[scale]" in err) == (2, True)
    status, text, _ = command(*arguments(tmp_path / "scores"))  # in one process then
    assert (status, "5 parts" in text) == (0, True)


def test_where_nobody_watches_a_line_now_and_then_says_how_long_it_takes(monkeypatch, command, tmp_path):
    monkeypatch.setattr("idecode_core.cli.score.SECONDS_BETWEEN_LINES", 0.0)
    _, _, err = command(*arguments(tmp_path / "scores", "--workers", 1))
    assert re.search(rf"{2 * PART} of {FILES + 1} files, [\d,.]+ per second, \d+ (s|min) left", err)


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


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_repaired_and_told_and_never_changes_a_score(damage, copied, unbroken, capsys):
    DAMAGES[damage](copied)
    words = [str(word) for word in arguments(copied, "--workers", 1)]
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    assert ended.value.code in (0, None), err
    assert f"{FILES + 1} files in {len(list(copied.glob('part-*')))} parts" in out
    assert pq.read_table(copied).equals(pq.read_table(unbroken))
    assert "Traceback" not in err
    if damage != "a part that is gone":  # as after a kill
        assert re.search(r"do not fit|not as it was written|written again|cannot be read", err)
    left = list(copied.rglob("mine.txt"))
    assert len(left) == damage.startswith("a folder in place")  # whatever it was, it is not deleted
    told: list[str] = []
    assert scored(copied, told.append).now == 0  # and the next run finds nothing to repair
    assert len(told) == 1


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_flipped_byte_anywhere_changes_a_score(data, copied, unbroken):
    """Whatever is flipped, cut off or exchanged in one of the files of a run."""
    shutil.rmtree(copied)
    shutil.copytree(unbroken, copied)
    path = data.draw(st.sampled_from(sorted(copied.iterdir())), "file")
    content = path.read_bytes()
    start = data.draw(st.integers(0, max(0, len(content) - 1)), "place")
    kind = data.draw(st.sampled_from(["flip", "cut", "insert"]))
    byte = bytes([data.draw(st.integers(0, 255), "byte")])
    path.write_bytes(
        content[:start]
        + {"flip": byte + content[start + 1 :], "cut": b"", "insert": byte + content[start:]}[kind]
    )
    scored(copied)
    assert pq.read_table(copied).equals(pq.read_table(unbroken))


def test_files_that_were_replaced_since_are_scored_again(world, copied, unbroken, tmp_path, monkeypatch):
    """By another time, and without one: the same size and the same time are found by --verify."""
    shutil.copytree(world, tmp_path / "world", symlinks=True)
    monkeypatch.chdir(tmp_path / "world")
    out = tmp_path / "fresh"
    scored(out)
    files = sorted(Path("pictures").glob("bild*.png"))
    before = files[0].stat()
    pixels = np.array(Image.open(files[0]))
    Image.fromarray(pixels[::-1].copy()).save(files[0])
    assert files[0].stat().st_mtime_ns != before.st_mtime_ns
    told: list[str] = []
    assert scored(out, told.append).now == PART
    assert "1 files have changed since they were scored; their 1 parts are scored again." in told[0]
    scored(tmp_path / "again")
    assert pq.read_table(out).equals(pq.read_table(tmp_path / "again"))

    was = files[1].stat()
    Image.fromarray(pixels).save(tmp_path / "new.bmp")
    files[1].write_bytes((tmp_path / "new.bmp").read_bytes()[: was.st_size].ljust(was.st_size, b"\0"))
    os.utime(files[1], ns=(was.st_atime_ns, was.st_mtime_ns))
    assert files[1].stat().st_size == was.st_size
    assert scored(out).now == 0
    assert scored(out, verify=True).now == PART
    scored(tmp_path / "once more")
    assert pq.read_table(out).equals(pq.read_table(tmp_path / "once more"))


def test_a_missing_file_that_has_come_is_scored(world, tmp_path, monkeypatch):
    monkeypatch.chdir(world)
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'late.png'}\n")
    run = {"source": tmp_path / "list.txt", "out": tmp_path / "out", "detector": "tiny", "workers": 1, "n": 1}
    assert score_files(**run).failures == 1
    Image.fromarray(random_images(1)[0]).save(tmp_path / "late.png")
    with pytest.warns(UserWarning, match="have changed"):
        assert score_files(**run).failures == 0


@pytest.mark.parametrize("name", ["data.parquet", "photo.jpg", "part-00000000.parquet", "notes"])
def test_a_folder_with_other_files_is_refused_and_left_as_it_is(name, command, tmp_path):
    (tmp_path / name).write_text("mine")
    status, out, err = command(*arguments(tmp_path, "--workers", 1))
    assert (status, out) == (2, "")
    assert "holds other files" in err
    assert (tmp_path / name).read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_run_of_an_earlier_version_is_refused_in_one_sentence(command, tmp_path):
    (tmp_path / "_run.json").write_text('{"source": "pictures", "scorer_sha256": "abc", "part_size": 1000}')
    (tmp_path / "part-00000000.parquet").write_text("theirs")
    status, _, err = command(*arguments(tmp_path, "--workers", 1))
    assert (status, "another version of this program" in err) == (2, True)
    assert (tmp_path / "part-00000000.parquet").read_text() == "theirs"


def test_two_processes_do_not_score_into_one_folder_at_once(command, copied):
    with running._alone_in(copied):
        status, _, err = command(*arguments(copied, "--workers", 1))
    assert (status, "Another process is scoring" in err) == (2, True)
    assert command(*arguments(copied, "--workers", 1))[0] == 0


def test_a_run_goes_on_only_where_its_relative_paths_mean_the_same(copied, tmp_path, monkeypatch):
    (tmp_path / "pictures").mkdir()
    tiny = Path("tiny").resolve()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match="another base"):
        score_files("pictures", copied, tiny, **SETTINGS, workers=1)


def test_parts_are_written_by_time(world, unbroken, tmp_path, monkeypatch):
    """Blocks take 2 seconds of a clock, and a part is written every 3: after the second block each time."""
    monkeypatch.chdir(world)
    clock = iter(range(0, 10_000, 2))
    monkeypatch.setattr("idecode_core.scale.part.time.monotonic", lambda: next(clock))
    found = score_files(
        "pictures", tmp_path, "tiny", **SETTINGS, workers=1, seconds=3, device="cpu", tell=print
    )
    assert found.parts == 3
    assert [len(pq.read_table(path)) for path in sorted(tmp_path.glob("part-*"))] == [10, 10, 4]
    assert pq.read_table(tmp_path).equals(pq.read_table(unbroken))  # wherever parts end, the same bits


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"n": 1},
        {"n": 2, "epsilon": 0.3},
        {"epsilon": 0.5, "delta": 0.1},
        {"aggregate": "max", "epsilon": 0.2},
    ],
)
def test_stored_vectors_are_judged_as_the_detector_would(asked, world, unbroken):
    found = judge_scored(unbroken, **asked)
    stored = pq.read_table(unbroken)
    assert found["file"].to_pylist() == stored["file"].to_pylist()
    assert found["error"].equals(stored["error"])
    good = [i for i, error in enumerate(stored["error"].to_pylist()) if error is None]
    paths = [world / stored["file"][i].as_py() for i in good]
    expected = load_detector(world / "tiny", "cpu").detect(paths, **{"n": 3, **asked})
    for i, verdict in zip(good, expected, strict=True):
        row = {name: found[name][i].as_py() for name in ("is_ood", "p_value", "rank", "k")}
        assert row == {name: getattr(verdict, name) for name in row}
        assert found["score"][i].as_py() == pytest.approx(verdict.score)
    bad = stored["file"].to_pylist().index("pictures/b broken.png")
    assert [found[name][bad].as_py() for name in ("is_ood", "p_value", "rank", "score")] == [None] * 4


def test_judge_gives_csv_parquet_and_json_without_the_model(copied, command, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "idecode_core.folder.detector.load_detector", lambda *a: pytest.fail("model was loaded")
    )
    expected = judge_scored(copied, epsilon=0.5)
    flagged = sum(expected["is_ood"].drop_null().to_pylist())
    assert 0 < flagged < FILES
    for name in ("v.csv", "v.parquet"):
        status, _, err = command("judge", copied, "--epsilon", 0.5, "--out", tmp_path / name)
        assert (
            status,
            f"{flagged} of {FILES} files flagged at epsilon = 0.5; 1 more have no score" in err,
        ) == (1, True)
    assert pq.read_table(tmp_path / "v.parquet").equals(expected)
    table = pandas.read_csv(tmp_path / "v.csv")
    assert table["p_value"].dropna().tolist() == expected["p_value"].drop_null().to_pylist()
    assert table["file"].tolist() == expected["file"].to_pylist()
    _, text, _ = command("judge", copied, "--epsilon", 0.5)
    assert text == (tmp_path / "v.csv").read_text()
    _, text, _ = command("judge", copied, "--epsilon", 0.5, "--json")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["is_ood"] for line in lines] == expected["is_ood"].to_pylist()
    status, _, err = command("judge", copied, "--epsilon", 0.01)
    assert (status, "can never flag anything" in err) == (0, True)


def test_judge_writes_over_its_own_tables_only(copied, command, tmp_path):
    pq.write_table(pyarrow.table({"file": ["a"], "mine": [1]}), tmp_path / "mine.parquet")
    (tmp_path / "mine.csv").write_text("file,mine\na,1\n")
    (tmp_path / "torn.parquet").write_text("PAR1 and no more")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for name in before:
        status, out, err = command("judge", copied, "--out", tmp_path / name)
        assert (status, out, "is not from this command, so it is not replaced" in err) == (2, "", True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    for name in ("v.csv", "v.parquet"):
        for epsilon in (0.5, 0.2):  # again into the same file
            assert command("judge", copied, "--epsilon", epsilon, "--out", tmp_path / name)[0] in (0, 1)
    assert pq.read_table(tmp_path / "v.parquet").equals(judge_scored(copied, epsilon=0.2))


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "a part that is gone"])
def test_judge_refuses_a_damaged_folder_in_one_sentence(damage, copied, command):
    DAMAGES[damage](copied)
    status, out, err = command("judge", copied, "--epsilon", 0.2)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "Traceback" not in err


def test_judge_says_what_it_cannot_do_in_one_sentence(copied, command, world, tmp_path):
    for words, sentence in (
        ([tmp_path], "holds no scores"),
        ([copied, "--n", 4], "n must lie between 1 and 3"),
        ([copied, "--n", 0], "n must lie between 1 and 3"),
        ([copied, "--epsilon", 2], "epsilon must lie strictly between 0 and 1"),
        ([copied, "--aggregate", "median"], "aggregate must be one of"),
        ([copied, "--out", tmp_path / "a.txt"], "ends in .csv or .parquet"),
        ([copied, "--out", copied / "a.parquet"], "would lie among the scored parts"),
        ([copied, "-d", "nowhere"], "No detector is called nowhere"),
    ):
        status, out, err = command("judge", *words)
        assert (status, out) == (2, "")
        assert sentence in err
    first_part(copied).unlink()
    status, _, err = command("judge", copied, "--epsilon", 0.2)
    assert f"{FILES + 1 - PART} of {FILES + 1} files have been scored, and are judged" in err
    # A detector with the same scorer that was calibrated again may judge, when it is named.
    _, text, _ = command("judge", copied, "--epsilon", 0.5, "-d", "other")
    assert text.count("\n") > FILES - PART


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
