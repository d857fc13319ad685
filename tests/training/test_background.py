"""A training in a process of its own: planned, told to go, looked at from elsewhere, stopped, one at a time, and killed."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from idecode_core.errors import TrainingError
from idecode_core.folder.detector import load_detector
from idecode_core.folder.stored import open_stored
from idecode_core.quality.user_data import user_result
from idecode_core.training import background
from idecode_core.training.background import State, seconds_left, share_done

PATIENCE = 240.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("IDECODE_SESSIONS", str(tmp_path / "sessions"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield tmp_path
    background.say("stop") if background.place().is_dir() else None
    ended()


def ended() -> None:
    for child in list(background._children):
        child.wait(60)


def pictures(folder: Path, count: int, seed: int, low: int = 0) -> Path:
    folder.mkdir()
    noise = np.random.default_rng(seed)
    for i in range(count):
        pixels = noise.integers(low, low + 120, (20, 20, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{i:03d}.png")
    return folder


def job(home: Path, count: int = 50) -> dict[str, object]:
    """A rotation network for one epoch: seconds."""
    source = pictures(home / "mine", count, seed=1)
    other = pictures(home / "other", 12, seed=2, low=130)
    return {
        "source": source, "out": home / "out" / "mine", "ood": [other], "model": "rotations", "epochs": 1,
        "summary": "noise", "device": "cpu",
    }  # fmt: skip


def wait(until: Callable[[State], bool]) -> State:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        state = background.look()
        if state is not None and until(state):
            return state
        time.sleep(0.05)
    raise TimeoutError((background.place() / "log.txt").read_text())


def test_it_plans_waits_for_a_word_and_ends_in_the_detector_that_train_folder_makes(home: Path) -> None:
    token = background.begin(job(home))
    assert background.has_token(token)
    assert not background.has_token("another")
    planned = wait(lambda state: state.phase != "reading")
    assert planned.phase == "planned", planned.error
    assert any("50 different images" in sentence for sentence in planned.sentences)
    assert planned.sentences[-1].startswith("Expected time: ")
    (few,) = [sentence for sentence in planned.sentences if "Fewer than" in sentence]
    assert "Calibrate in place of Train: all 50 then calibrate" in few
    assert "0.02, not 0.062" in few  # 1 / 51, and 1 / 16 where 15 calibrate
    assert "`" not in few  # nobody types a command there
    assert planned.left is not None
    time.sleep(0.5)
    assert background.look() == planned  # nothing is done before somebody says so
    assert not (home / "out" / "mine").exists()
    with pytest.raises(TrainingError, match="one at a time"):
        background.begin(job_again(home))
    background.say("go")
    done = wait(lambda state: not state.is_running)
    assert done.phase == "done", done.error
    assert done.result["parts"]["calibration"] == load_detector(home / "out" / "mine").calibration.k
    assert done.result["against"][0]["label"] == "other"
    found = user_result(open_stored(home / "out" / "mine"))
    assert done.result["failed"] is found.failed
    assert done.result["weak"] == list(found.weak)
    assert done.share == 1
    background.forget()  # also while its process is on its way out
    assert background.look() is None
    assert (home / "out" / "mine" / "config.json").is_file()


def job_again(home: Path) -> dict[str, object]:
    return {"source": home / "mine", "out": home / "out" / "second", "ood": []}


def test_stopped_it_keeps_what_was_done_and_killed_it_says_so(home: Path) -> None:
    wanted = job(home)
    background.begin(wanted)
    wait(lambda state: state.phase == "planned")
    background.say("stop")
    assert wait(lambda state: not state.is_running).phase == "stopped"
    background.begin(wanted)  # at once
    wait(lambda state: state.phase == "planned")
    os.kill(background._children[-1].pid, signal.SIGKILL)
    ended()
    killed = background.look()
    assert killed is not None
    assert killed.phase == "failed"
    assert "goes on where it was" in killed.error
    assert not background.is_running()


def test_what_a_user_can_put_right_is_one_sentence(home: Path) -> None:
    pictures(home / "few", 3, seed=1)
    background.begin({"source": home / "few", "out": home / "out" / "mine", "ood": []})
    failed = wait(lambda state: not state.is_running)
    assert failed.phase == "failed"
    assert "expected at least 40 different images, got 3" in failed.error


def test_a_state_that_cannot_be_read_is_none(home: Path) -> None:
    assert background.look() is None
    background.place().mkdir(parents=True)
    for text in ("", "[]", '{"phase": "done"}', json.dumps({"what": 1})):
        (background.place() / "state.json").write_text(text)
        assert background.look() is None


def test_time_left_follows_the_clock_once_enough_is_done() -> None:
    stages = {"fitting": 2.0, "calibrating": 6.0, "other": 2.0}
    assert share_done(stages, "other", 1, 4) == pytest.approx(0.85)
    assert share_done(stages, "something else", 1, 4) == 0
    assert seconds_left(0.85, 85.0, 1000.0) == pytest.approx(15.0)
    assert seconds_left(0.01, 5.0, 100.0) == 95.0
    assert seconds_left(0.0, 5.0, 1.0) == 0.0
