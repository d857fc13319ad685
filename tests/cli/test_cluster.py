"""Workers of Ray: the same bits as one process, and one sentence where Ray is missing."""

# ruff: noqa: F811  `command` and others are fixtures of another file

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from test_score import FILES, PART, SETTINGS, arguments, command, small_blocks, unbroken, world  # noqa: F401  fixtures

from idecode_core.conformal.settings import Settings
from idecode_core.scale.cluster import ReadActor, ScoreActor
from idecode_core.scale.part import PART_NAME
from idecode_core.scale.run import look_at, open_run


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
    job = open_run(Path("pictures"), tmp_path, world / "tiny", Settings(**SETTINGS), print)
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


def test_several_workers_without_ray_are_told_what_is_missing(monkeypatch, command, tmp_path):
    monkeypatch.setattr("idecode_core.scale.run.find_spec", lambda name: None)
    status, _, err = command(*arguments(tmp_path / "scores", "--workers", 2))
    assert (status, "idecode-studio[scale]" in err) == (2, True)
    status, text, _ = command(*arguments(tmp_path / "scores"))  # in one process then
    assert (status, "5 parts" in text) == (0, True)


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
