"""A detector takes its place whole, or the old one stays."""

# ruff: noqa: F811  `folder` is a fixture of another file

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small import small_scorer
from test_folder_detector import (
    calibrated,
    folder,  # noqa: F401  a fixture
)

from idecode_core.errors import IdecodeError
from idecode_core.folder import detector as store
from idecode_core.folder.detector import load_detector, save_detector


def test_a_detector_that_cannot_be_saved_leaves_the_old_one_whole(folder, monkeypatch):
    """A file of the new detector cannot be written: what was there before is still a detector, and nothing else is left."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    other = calibrated(small_scorer(seed=1))

    def full_disk(folder, config):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_listing", full_disk)
    with pytest.raises(IdecodeError, match="No space left on device"):
        save_detector(other, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert list(folder.parent.iterdir()) == [folder]
    monkeypatch.undo()
    save_detector(other, folder)
    assert np.array_equal(
        load_detector(folder, "cpu").calibration.score_vectors, other.calibration.score_vectors
    )


KILLED_WHILE_SAVING = """
import os, signal, sys
import numpy as np
from idecode_core.files import write
from small import small_scorer, random_images
from idecode_core.detector import Detector
from idecode_core.folder.detector import load_detector, save_detector

folder, way = sys.argv[1:]
if way == "two steps":
    write.exchanged = lambda a, b: False
old, new = (Detector.calibrate(name, small_scorer(seed=1), random_images(7, seed=4), n_max=3) for name in ("old", "new"))
steps = 0

def save_and_die(moment):
    def watch(frame, event, argument):
        global steps
        steps += event in ("c_call", "call")
        if steps == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)
    save_detector(new, folder)
    sys.setprofile(None)

for _ in range(2):  # the first time imports some modules
    calls, steps = steps, 0
    save_and_die(-1)
calls, steps = steps, 0
for moment in np.linspace(calls * 0.5, calls * 1.2, 20).astype(int):
    save_detector(old, folder)
    child = os.fork()
    if child == 0:
        save_and_die(moment)
        os._exit(0)
    print(os.waitpid(child, 0)[1], load_detector(folder, "cpu").name)
"""


@pytest.mark.parametrize("way", ["exchange", "two steps"])
def test_kill_minus_nine_while_saving_leaves_the_old_detector_or_the_new_one(folder, way):
    """Repair: kills in the save window lost both. Here at 20 moments, the last of them after the end."""
    command = [sys.executable, "-c", KILLED_WHILE_SAVING, str(folder), way]
    paths = f"{Path(__file__).parents[1]}:{Path(__file__).parents[2]}"
    environment = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = [line.split() for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert len(found) == 20
    assert {name for _, name in found} == {"old", "new"}
    assert sum(status == "9" for status, _ in found) >= 10
