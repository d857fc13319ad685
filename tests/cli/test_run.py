"""A run over many files: killed, resumed, refused where it does not fit."""

# ruff: noqa: F811  `command` and others are fixtures of another file

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image
from small import random_images
from test_score import FILES, PART, SETTINGS, arguments, command, copied, small_blocks, unbroken, world  # noqa: F401  fixtures

from idecode_core.errors import SettingError
from idecode_core.scale import run as running
from idecode_core.scale.run import score_files


def test_a_killed_run_goes_on_and_equals_an_unbroken_one(world, unbroken, command, tmp_path):
    out = tmp_path / "scores"
    script = (
        "import os, signal, sys\nfrom idecode_core.cli.app import main\nfrom idecode_core.scale import part, run\n"
        f"run.BLOCK = {PART}\n"
        "write, written = part.write_bytes, []\n"
        "def write_or_die(path, data):\n"
        "    if len(written) == 2:\n"
        "        path.with_name('.half.part').write_bytes(data[:100]); os.kill(os.getpid(), signal.SIGKILL)\n"
        "    written.append(path); write(path, data)\n"
        "part.write_bytes = write_or_die\nmain(sys.argv[1:])\n"
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


def test_a_run_with_other_settings_is_not_mixed_in(unbroken, command):
    for more in (["--seed", 1], ["--n", 2], ["--epsilon", 0.3], ["--delta", 0.1], ["--aggregate", "max"]):
        status, _, err = command(*arguments(unbroken, "--workers", 1, *more))
        assert status == 2
        assert "holds a run with another" in err


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
