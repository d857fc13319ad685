"""A training of own files in a process of its own: it reads and plans, waits to be told, then does what `train_folder` does.

    PLACE/job.json    what was asked for: the arguments of `plan_folder`, and the token of who asked
    PLACE/state.json  how far it is; the process alone writes it
    PLACE/go, stop    what it was told
    PLACE/lock        held for as long as the process lives, however it ends: one training at a time

Whoever started it may go, reload or come back later: `look` reads how far it is. Needs no torch here.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from idecode_core.errors import IdecodeError, TrainingError
from idecode_core.files import write_json
from idecode_core.session.store import sessions_root

Phase = Literal["reading", "planned", "working", "done", "failed", "stopped"]
RUNNING: tuple[Phase, ...] = ("reading", "planned", "working")
ALLOWED = "IDECODE_TRAIN"
"""The variable by which an app that others reach too is allowed to train (1) or not (0)."""
WAITS = 1800.0  # seconds that a plan waits for a word
LEAVES = 20.0  # seconds that a process may take to end
OFTEN = 0.4  # seconds between two reports
FIRST = 0.05  # of the work; before, the plan's time says more than the clock
PACKAGE_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class State:
    """How far a training is."""

    phase: Phase
    name: str
    """Of the new detector."""
    sentences: list[str] = field(default_factory=list)
    """What was found, the plan, and how long it takes."""
    what: str = ""
    """Being done."""
    share: float = 0.0
    """Of all the work that is done."""
    left: float | None = None
    """Seconds, about."""
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    """`TrainedFolder.record()`."""

    @property
    def is_running(self) -> bool:
        return self.phase in RUNNING


class Stopped(Exception):
    """Told to."""


def place() -> Path:
    """Beside the sessions."""
    return sessions_root().parent / "training"


def begin(job: Mapping[str, Any]) -> str:
    """Start to read and plan: `job` are the arguments of `plan_folder`. The token that says later who asked."""
    here, token = place(), secrets.token_urlsafe(12)
    here.mkdir(parents=True, exist_ok=True, mode=0o700)
    before, end = look(), time.monotonic() + LEAVES
    while is_running() and not (before and before.is_running) and time.monotonic() < end:
        time.sleep(0.05)  # the one before has said its last word
    if is_running():
        raise TrainingError(
            "Another training runs: expected one at a time. Wait until it is done, or stop it."
        )
    for name in ("go", "stop", "state.json"):
        (here / name).unlink(missing_ok=True)
    plain: dict[str, Any] = {
        key: value if isinstance(value, (bool, int, type(None))) else str(value) for key, value in job.items()
    }
    plain["ood"] = list(map(str, job.get("ood", ())))
    write_json(here / "job.json", {"token": token, "job": plain})
    write_json(here / "state.json", asdict(State("reading", str(job["out"]))))
    path = os.pathsep.join([str(PACKAGE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with (here / "log.txt").open("wb") as log:
        _children.append(
            subprocess.Popen(
                [sys.executable, "-m", __name__, str(here)],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # it outlives the app
            )
        )
    return token


_children: list["subprocess.Popen[bytes]"] = []


def is_running() -> bool:
    """Whether a process holds the lock, or one that was started here has not come to it yet."""
    _children[:] = [child for child in _children if child.poll() is None]
    if _children:
        return True
    try:
        with FileLock(place() / "lock", timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


def read_state() -> State | None:
    try:
        return State(**json.loads((place() / "state.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def look() -> State | None:
    """How far the last training is, or how it ended; None where there was none."""
    before = read_state()
    if before is None or not before.is_running or is_running():
        return before
    last = read_state()  # the process may have written its last word in between; else it was killed
    if last is not None and not last.is_running:
        return last
    return State(
        "failed", before.name, before.sentences, error="The training ended without a word: perhaps the machine was turned off or "
        "ran out of memory. What was done is kept: start it again with the same files, and it goes on where it was.",
    )  # fmt: skip


def has_token(token: str) -> bool:
    """Whether this token is the one of the last training."""
    try:
        stored = json.loads((place() / "job.json").read_text(encoding="utf-8"))["token"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return secrets.compare_digest(str(stored), token)


def say(word: Literal["go", "stop"]) -> None:
    (place() / word).touch()


def forget() -> None:
    """The last training's state and uploaded files, unless it runs. The detector stays, and so does what was done of an
    unfinished one."""
    state = look()
    if state is None or not state.is_running:  # its process may still be on its way out
        for name in ("state.json", "job.json", "go", "stop"):
            (place() / name).unlink(missing_ok=True)


def empty_folder(name: str) -> Path:
    """A new folder for files that were uploaded; those of the training before go."""
    folder = place() / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    return folder


class Process:
    """The training's own side."""

    def __init__(self, here: Path) -> None:
        self.here = here
        self.job: dict[str, Any] = json.loads((here / "job.json").read_text(encoding="utf-8"))["job"]
        self.state: dict[str, Any] = asdict(State("reading", self.job["out"]))
        self.stages: Mapping[str, float] = {}
        self.seconds = 0.0
        self.began = self.written = time.monotonic()

    def write(self, **changes: Any) -> None:
        self.state |= changes
        self.written = time.monotonic()
        write_json(self.here / "state.json", self.state)

    def told(self, word: str) -> bool:
        return (self.here / word).exists()

    def report(self, what: str, done: int, total: int) -> None:
        """Whatever it raises stops the work, which goes on later where it was."""
        if self.told("stop"):
            raise Stopped
        if time.monotonic() - self.written < OFTEN and done < total:
            return
        if not self.stages:
            self.write(what=what, share=done / max(total, 1))
            return
        share = share_done(self.stages, what, done, total)
        self.write(
            what=what, share=share, left=seconds_left(share, time.monotonic() - self.began, self.seconds)
        )

    def run(self) -> None:
        from idecode_core.training.train_folder import plan_folder

        plan = plan_folder(**self.job, report=self.report, runs=self.here / "runs")
        self.seconds, self.stages = plan.seconds, plan.stages
        self.write(
            phase="planned", sentences=plan.sentences(in_app=True), what="", share=0.0, left=self.seconds
        )
        end = time.monotonic() + WAITS
        while not self.told("go"):
            if self.told("stop") or time.monotonic() > end:
                raise Stopped
            time.sleep(0.1)
        self.began = time.monotonic()
        self.write(phase="working")
        trained = plan.train(self.report)
        assert trained is not None  # one process
        self.write(phase="done", share=1.0, left=0.0, result=trained.record())


def share_done(stages: Mapping[str, float], what: str, done: int, total: int) -> float:
    """Of all the work, by the parts that come before this one and how far this one is.

    >>> share_done({"fitting": 1.0, "calibrating": 3.0}, "calibrating", 1, 2)
    0.625
    """
    names, whole = list(stages), sum(stages.values())
    if what not in stages or not whole:
        return 0.0
    before = sum(stages[name] for name in names[: names.index(what)])
    return (before + stages[what] * done / max(total, 1)) / whole


def seconds_left(share: float, elapsed: float, planned: float) -> float:
    """By the clock, once enough is done; before, by the plan.

    >>> seconds_left(0.25, 30.0, 999.0), seconds_left(0.0, 1.0, 60.0)
    (90.0, 59.0)
    """
    return elapsed * (1 - share) / share if share >= FIRST else max(planned - elapsed, 0.0)


def main(here: Path) -> None:
    with suppress(OSError, AttributeError):
        os.nice(5)  # the app goes first
    try:
        lock = FileLock(here / "lock").acquire(timeout=3)  # somebody may be looking whether it is held
    except Timeout:
        return  # another one was quicker
    with lock:
        process = Process(here)
        try:
            process.run()
        except Stopped:
            process.write(phase="stopped")
        except IdecodeError as error:
            process.write(phase="failed", error=str(error))
        except Exception:
            traceback.print_exc()
            process.write(
                phase="failed",
                error=f"Stopped by an error of the program, please report it: the details are in {here / 'log.txt'}.",
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
