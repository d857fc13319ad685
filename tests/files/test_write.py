"""Atomic writes: the old file stays until the new one is complete."""

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from idecode_core.errors import IdecodeError
from idecode_core.files import write_atomically, write_json, write_npz, write_text

WRITERS = {
    "text": lambda path: write_text(path, "new"),
    "json": lambda path: write_json(path, {"new": 1}),
    "npz": lambda path: write_npz(path, {"new": np.ones(3)}),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_old_file_stays_until_the_new_one_is_complete(name, tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def killed(self, target):
        assert path.read_bytes() == b"old"  # complete, under its own name, beside the new one
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            WRITERS[name](path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    WRITERS[name](path)
    assert path.read_bytes() != b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_process_killed_in_the_middle_of_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    program = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        from idecode_core.files import write_atomically

        def write(temporary):
            temporary.write_text("half of the n")
            os.kill(os.getpid(), 9)

        write_atomically(Path(sys.argv[1]), write)
        """
    )
    finished = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert finished.returncode == -9
    assert path.read_text() == "old"


def test_a_write_that_fails_is_told_in_words_and_leaves_no_trace(tmp_path):
    def full(temporary: Path) -> None:
        temporary.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(IdecodeError, match="No space left on device"):
        write_atomically(tmp_path / "file", full)
    assert list(tmp_path.iterdir()) == []


def test_written_files_can_be_read_by_others(tmp_path):
    write_text(tmp_path / "file", "x")
    assert (tmp_path / "file").stat().st_mode & 0o044 == 0o044
