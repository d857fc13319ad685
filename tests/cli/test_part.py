"""Parts of a run: damaged ones are repaired and told, and never change a score."""

# ruff: noqa: F811  `copied` and others are fixtures of another file

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from test_score import (  # noqa: F401  fixtures
    DAMAGES,
    FILES,
    PART,
    SETTINGS,
    arguments,
    copied,
    flip,
    scored,
    small_blocks,
    unbroken,
    world,
)

from idecode_core.cli.app import main
from idecode_core.scale.run import score_files


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
