"""Part 8: sessions from strangers. Bytes changed, cut and swapped."""

import os
import shutil
from pathlib import Path

import numpy as np

from idecode_core.session import Session
from trial import small
from trial.table import Outcome


def try_sessions(seed: int, count: int, root: Path) -> Outcome:
    """Bytes of a session's files changed, cut and swapped: opened with what was saved, or refused with one sentence."""
    outcome, generator = Outcome("sessions", "changed, cut and swapped files"), np.random.default_rng(seed)
    os.environ["IDECODE_SESSIONS"] = str(root)
    detector = small.detector("session")
    made = Session.from_detection(detector.detect(small.pictures(3, 1), n=3), name="good").save()
    made.tag(made.inputs[0], "check")
    expected = made.save().p_values
    files = sorted(path for path in made.folder.rglob("*") if path.is_file())
    with outcome.timed():
        for i in range(count):
            case = root / f"case-{i}"
            shutil.copytree(made.folder, case)
            victim = case / files[int(generator.integers(len(files)))].relative_to(made.folder)
            data = bytearray(victim.read_bytes())
            if i % 3 == 0:
                data = data[: int(generator.integers(len(data) + 1))]
            elif i % 3 == 1 and data:
                data[int(generator.integers(len(data)))] ^= int(generator.integers(1, 256))
            else:
                data = bytearray(files[int(generator.integers(len(files)))].read_bytes())
            victim.write_bytes(bytes(data))
            opened: list[Session] = []
            outcome.is_refused(
                victim.name, lambda case=case, opened=opened: opened.append(Session.open(case))
            )  # type: ignore[misc]
            if opened:
                if not np.array_equal(opened[0].p_values, expected):
                    outcome.blame("wrong", f"{victim.name}: other p-values")
                outcome.is_refused(f"the inputs of {victim.name}", opened[0].samples)
            shutil.rmtree(case)
    return outcome
