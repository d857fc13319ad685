"""Part 3: kill -9 at random moments. Whatever was there before is there after, or the new one is; work goes on.

Each job runs in a forked process, which is killed after a random share of the time that it takes. What it left is then
looked at in a process of its own.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch._dynamo  # an optimiser imports it at its first step; here once, and not in every forked process

from idecode_core.detector import Detector
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.listing import list_folders
from idecode_core.folder.stored import has_scores, open_stored
from idecode_core.quality.score_sets import SetToScore, score_test_sets
from idecode_core.scale import run
from idecode_core.scale.judged import judge_scored
from idecode_core.scale.run import ScoredFiles
from idecode_core.training.finish import finish
from idecode_core.training.loop import train
from idecode_core.training.train_folder import train_folder
from trial import small
from trial.bad_files import saved
from trial.progress import Progress
from trial.table import Outcome

PATIENCE = 120.0
MOST_SECONDS = 300.0  # for all kills of one job; on a machine that is too busy there are fewer of them
OLD, NEW = "old", "new"
FILES = 40  # in the folder that is scored


@dataclass(frozen=True)
class Job:
    """Work that may be killed: what is there before, the work, and what must hold after it was killed."""

    what: str
    prepare: Callable[[Path], None]
    work: Callable[[Path], None]
    check: Callable[[Path], None]
    """Raises when something was lost; may do the work again, as a user would."""


def prepare_detector(root: Path) -> None:
    save_detector(small.detector(OLD), root / "detector")


def save(root: Path) -> None:
    save_detector(small.detector(NEW, seed=1), root / "detector")


def check_detector(root: Path) -> None:
    """One detector, whole, the old or the new; nothing else is listed."""
    listed = list_folders(root)
    assert [entry.folder.name for entry in listed.detectors] == ["detector"], listed
    assert listed.broken == [], listed.broken
    found = load_detector(root / "detector", "cpu")
    expected = small.detector(found.name, seed={OLD: 0, NEW: 1}[found.name])
    assert np.array_equal(found.calibration.score_vectors, expected.calibration.score_vectors)


def train_and_finish(root: Path) -> None:
    task = small.task()
    train(task, root / "run")
    finish(task, root / "run", root / "detector")


def check_training(root: Path) -> None:
    """The old detector or the new one; then the run goes on to the same weights as an unbroken one."""
    name = load_detector(root / "detector", "cpu").name
    assert name in (OLD, small.RECIPE.name), name
    train_and_finish(root)
    unbroken = root.parent / "unbroken"
    if not unbroken.exists():
        train_and_finish(unbroken)
    for name in ("run/best.safetensors", "run/state.safetensors", "detector/model.safetensors"):
        assert small.same_weights(root / name, unbroken / name), name
    vectors = [
        load_detector(place / "detector", "cpu").calibration.score_vectors for place in (root, unbroken)
    ]
    assert np.array_equal(*vectors)


def calibrate(root: Path) -> None:
    base = load_detector(root / "detector", "cpu")
    made = Detector.calibrate(NEW, base.scorer, small.pictures(30, 3), n_max=20)
    save_detector(made, root / "calibrated")


def check_calibrated(root: Path) -> None:
    """The new folder is there and whole, or not there at all; the one that it was made from is untouched."""
    assert load_detector(root / "detector", "cpu").name == OLD
    listed = list_folders(root)
    assert listed.broken == [], listed.broken
    if (root / "calibrated").exists():
        assert load_detector(root / "calibrated", "cpu").name == NEW
    calibrate(root)
    assert load_detector(root / "calibrated", "cpu").calibration.k == 30


def prepare_batch(root: Path) -> None:
    from PIL import Image

    prepare_detector(root)
    (root / "pictures").mkdir()
    for i, pixels in enumerate(small.pictures(FILES, 7)):
        (root / "pictures" / f"{i:03d}.png").write_bytes(saved(Image.fromarray(pixels), "PNG"))


def score_batch(root: Path) -> None:
    score_some(root)


def score_some(root: Path) -> ScoredFiles:
    run.BLOCK = 5
    return run.score_files(
        root / "pictures", root / "scored", root / "detector", n=5, epsilon=0.1, workers=1, seconds=0, device="cpu",
        tell=lambda sentence: None,
    )  # fmt: skip


def check_batch(root: Path) -> None:
    """The same command goes on, and every file has one row."""
    found = score_some(root)
    assert (found.files, found.failures) == (FILES, 0), found
    assert judge_scored(root / "scored").num_rows == FILES


def score_sets(root: Path) -> None:
    sets = [
        SetToScore(name, is_ood, small.pictures(6, seed))
        for seed, (name, is_ood) in enumerate((("inside", False), ("outside", True), ("beyond", True)))
    ]
    score_test_sets(root / "detector", sets)


def check_sets(root: Path) -> None:
    """What is stored can be read as far as it goes, and the same command completes it."""
    assert load_detector(root / "detector", "cpu").name == OLD
    if has_scores(root / "detector") and (root / "detector" / "scores" / "outside.npz").exists():
        open_stored(root / "detector")  # the first set was finished before the second began
    score_sets(root)
    assert sorted(one.name for one in open_stored(root / "detector").ood_sets) == ["beyond", "outside"]


def train_files(root: Path) -> None:
    train_folder(
        root / "pictures",
        root / "detector",
        model="rotations",
        epochs=2,
        replace=True,
        device="cpu",
        runs=root / "runs",
    )


def check_files(root: Path) -> None:
    """The old detector or the new one; the same call goes on to the calibration of an unbroken run, and no picture is gone."""
    assert load_detector(root / "detector", "cpu").name in (OLD, "detector")
    train_files(root)
    unbroken = root.parent / "unbroken"
    if not unbroken.exists():
        prepare_batch(unbroken)
        train_files(unbroken)
    one, two = (load_detector(place / "detector", "cpu").calibration for place in (root, unbroken))
    assert np.array_equal(one.score_vectors, two.score_vectors)
    assert len(list((root / "pictures").iterdir())) == FILES


JOBS = (
    Job("saving over a detector", prepare_detector, save, check_detector),
    Job("training and replacing a detector", prepare_detector, train_and_finish, check_training),
    Job("folder of files, trained on", prepare_batch, train_files, check_files),
    Job("calibrating", prepare_detector, calibrate, check_calibrated),
    Job("scoring a folder of files", prepare_batch, score_batch, check_batch),
    Job("writing score files", prepare_detector, score_sets, check_sets),
)


def try_kills(seed: int, count: int, root: Path, jobs: Sequence[Job] = JOBS) -> Iterator[Outcome]:
    """Each job `count` times; one that ends before its time is up is not counted as killed, and done again."""
    torch.set_num_threads(1)
    generator = np.random.default_rng(seed)
    for job in jobs:
        yield try_job(job, generator, count, root / job.what.split()[0])


def try_job(job: Job, generator: np.random.Generator, count: int, root: Path) -> Outcome:
    outcome, begin = Outcome("kills", job.what), time.monotonic()
    full = time_of(job, root)
    tries, progress = 0, Progress(job.what, count, "kills")
    while outcome.cases < count and tries < 4 * count + 8 and time.monotonic() - begin < MOST_SECONDS:
        tries += 1
        progress(outcome.cases)
        fresh(job, root)
        child = started(lambda: job.work(root / "case"))
        time.sleep(full * generator.uniform(0.0, 1.0))
        os.kill(child, signal.SIGKILL)
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            continue  # it was done already
        outcome.cases += 1
        status = waited(started(lambda: job.check(root / "case"), root / "problem"), PATIENCE)
        if status is None:
            outcome.blame("hangs", job.what)
        elif status != 0:
            outcome.blame("wrong", (root / "problem").read_text()[-300:])
    outcome.seconds = time.monotonic() - begin
    return outcome


def fresh(job: Job, root: Path) -> None:
    """The state before, made once and copied."""
    if not (root / "before").exists():
        (root / "before").mkdir(parents=True)
        assert waited(started(lambda: job.prepare(root / "before")), PATIENCE) == 0
    shutil.rmtree(root / "case", ignore_errors=True)
    shutil.copytree(root / "before", root / "case")


def time_of(job: Job, root: Path) -> float:
    """How long the work takes when nobody kills it."""
    fresh(job, root)
    begin = time.monotonic()
    assert waited(started(lambda: job.work(root / "case"), root / "problem"), PATIENCE) == 0, (
        root / "problem"
    ).read_text()
    return time.monotonic() - begin


def started(work: Callable[[], None], problem: Path | None = None) -> int:
    """The number of a new process that does the work; it writes what went wrong to a file."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException as error:
        if problem is not None:
            problem.write_text(f"{type(error).__name__}: {error}")
        os._exit(1)


def waited(child: int, seconds: float) -> int | None:
    """The exit status of a process; None when it does not end in time, and is ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
