"""Part 4: a disk that is full and a folder that may not be written. One sentence, and nothing is lost."""

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from idecode_core.errors import IdecodeError
from trial.kills import JOBS, Job, fresh, started, waited
from trial.table import Outcome

NOBODY = 65534
PATIENCE = 120.0


def try_disk(short: bool, root: Path) -> Iterator[Outcome]:
    sizes = (3000,) if short else (0, 100, 1000, 3000, 10_000, 30_000)
    full, locked = Outcome("disk", "full after a few bytes"), Outcome("disk", "read-only folder")
    for job in JOBS:
        for size in sizes:
            attempt(full, job, root / job.what.split()[0], lambda size=size: limit(size))  # type: ignore[misc]
        attempt(
            locked, job, root / job.what.split()[0], lambda job=job: lock(root / job.what.split()[0] / "case")
        )  # type: ignore[misc]
    yield full
    yield locked


def attempt(outcome: Outcome, job: Job, root: Path, hinder: Callable[[], None]) -> None:
    """The work in a process that is hindered; it ends well or with a sentence, and the check must hold after it."""
    begin = time.monotonic()
    fresh(job, root)
    outcome.cases += 1

    def work() -> None:
        hinder()
        try:
            job.work(root / "case")
        except IdecodeError as error:
            if "\n" in str(error):
                raise

    problem = root / "problem"
    problem.write_text("")
    problem.chmod(0o666)
    status = waited(started(work, problem), PATIENCE)
    unlock(root / "case")
    if status is None:
        outcome.blame("hangs", job.what)
    elif status != 0:
        outcome.blame("tracebacks", f"{job.what}: {problem.read_text()[:200]}")
    status = waited(started(lambda: job.check(root / "case"), problem), PATIENCE)
    if status != 0:
        outcome.blame("wrong", f"{job.what}: {problem.read_text()[:200]}")
    outcome.seconds += time.monotonic() - begin


def limit(size: int) -> None:
    """No file of this process may grow beyond `size` bytes, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error in place of a signal
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def lock(folder: Path) -> None:
    """Nothing below the folder may be written by this process."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    for path in (folder, *folder.parents):
        if os.access(path, os.W_OK) and path.stat().st_uid == os.geteuid() and path != Path("/tmp"):
            path.chmod(path.stat().st_mode | 0o055)
    if os.geteuid() == 0:  # root may write everywhere
        os.setuid(NOBODY)


def unlock(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
