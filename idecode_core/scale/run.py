"""A run: what is to be done, what is done, and who does it. A killed run goes on where it was.

Nothing in a run's folder is trusted: `_run.json` and the list of files have their hashes, parts have theirs (`part`), and
what does not fit is put into `_aside/`, scored again and told.
"""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from idecode_core.conformal.settings import Settings
from idecode_core.errors import IdecodeError, InputError, NothingFlaggedWarning, SettingError
from idecode_core.files import write_json
from idecode_core.files.read import read_json
from idecode_core.files.write import could_not_write
from idecode_core.folder.manifest import NAME as CALIBRATION
from idecode_core.folder.manifest import content_sha256
from idecode_core.folder.settings import find_detector, read_settings
from idecode_core.modality import modality_named
from idecode_core.scale.files import LISTS, Stretch, Tell, find_files, list_sha256, names_in, write_list
from idecode_core.scale.files import NAME as LIST
from idecode_core.scale.part import (
    PART_NAME,
    Done,
    Job,
    UnfitError,
    Worker,
    lines_sha256,
    part_paths,
    read_part,
    sha256_of,
    stamp,
)

RUN, LOCK, ASIDE = "_run.json", "_lock", "_aside"  # readers of Parquet folders pass over names that begin so
FORMAT = 2
BLOCK = 50
"""Files that are scored together. Scores depend on it in their last bits."""
SECONDS = 30.0
"""What a worker does again after a kill at the most, and the time that one block takes."""
MOST_FILES = 1_000
"""Files in one part, however quickly they are scored; fewer than that do not wait for Ray."""
UNFINISHED = "Run the same `score` command again, which scores what is missing or damaged."


@dataclass(frozen=True)
class ScoredFiles(Done):
    """A finished run."""

    now: int = 0
    """How many of its files were scored by this call."""


def score_files(
    source: Path | str,
    out: Path | str,
    detector: Path | str,
    *,
    n: int | None = None,
    epsilon: float = 0.05,
    delta: float | None = None,
    seed: int = 0,
    aggregate: str = "sum",
    device: str | None = None,
    model: str | None = None,
    trust_program: bool = False,
    workers: int | None = None,
    address: str | None = None,
    seconds: float = SECONDS,
    verify: bool = False,
    progress: Callable[[int, int], None] = lambda done, files: None,
    tell: Tell = warnings.warn,
) -> ScoredFiles:
    """Score a folder of files, or a list of them, into Parquet parts in the folder `out`; goes on with a run that was
    begun there. All that `idecode score` does.

    `workers`: None is all cores or GPUs where Ray is installed, 1 is this process; `address` is a Ray cluster. A part is
    written every `seconds`. Files whose size or time has changed since are scored again; with `verify`, files whose
    content has. `model` ("module:function") and `trust_program` are for a detector around your own network, see
    `load_detector`. `progress` is called with the files done and all files, `tell` with what the user should know.
    """
    folder, detector_folder = Path(out), find_detector(detector)
    _check(workers, address, seconds)
    if not (folder / RUN).exists():
        _check_foreign(folder)
    with _alone_in(folder):
        asked = Settings(n, epsilon, delta, aggregate, seed)
        job = open_run(Path(source), folder, detector_folder, asked, tell)
        network = {"model": model, "trust_program": trust_program}
        worker = Worker(folder, job, device, seconds, network) if verify else None
        state = look_at(folder, job, _stretch_size(job, workers, address), changed_inputs(job, worker))
        _put_aside(folder, state, tell)
        before = state.done
        if before.files:
            rest = "; going on with the rest" if state.todo else ""
            tell(f"{folder}: {before.files:,} of {job.files:,} files were scored before{rest}.")

        def report(files: int) -> None:
            progress(before.files + files, job.files)

        report(0)
        few = workers is None and sum(stretch.count for stretch in state.todo) <= MOST_FILES
        if not address and (workers == 1 or few or find_spec("ray") is None):
            done = Done()
            for stretch in state.todo:
                worker = worker or Worker(folder, job, device, seconds, network)
                done += worker.score(stretch, lambda files, start=done.files: report(start + files))  # type: ignore[misc]
        else:
            from idecode_core.scale.cluster import score_on_ray

            done = score_on_ray(
                folder, job, state.todo, workers=workers, address=address, device=device, seconds=seconds,
                network=network, progress=report,
            )  # fmt: skip
    total = before + done
    if total.files != job.files:
        raise IdecodeError(f"{folder}: {total.files:,} of {job.files:,} files have been scored. {UNFINISHED}")
    return ScoredFiles(**vars(total), now=done.files)


def _check(workers: int | None, address: str | None, seconds: float) -> None:
    if workers is not None and workers < 1:
        raise SettingError(f"Expected at least one worker, got {workers}.")
    if not seconds >= 0:
        raise SettingError(f"The seconds after which a part is written must be 0 or more, got {seconds}.")
    if (address or (workers or 1) > 1) and find_spec("ray") is None:
        raise SettingError(
            'Several workers need Ray: pip install "idecode-studio[scale]". Leave --workers out for one process.'
        )


def _stretch_size(job: Job, workers: int | None, address: str | None) -> int:
    """Files that a worker takes at a time: several times for each of many, so that none waits long for the last."""
    if workers == 1 or (workers is None and job.files <= MOST_FILES):
        return MOST_FILES
    share = job.files // (4 * (workers or (64 if address else os.cpu_count() or 1)))
    return max(job.block, min(MOST_FILES, share) // job.block * job.block)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """SettingError while another process scores into the same folder; the system frees the lock of a dead one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a")
    except OSError as error:
        raise could_not_write(folder, error) from error
    with lock:
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingError(
                f"Another process is scoring into {folder}. Wait for it, or choose another folder for --out."
            ) from None
        except (ImportError, OSError):  # Windows; a file system without locks
            pass
        yield


def open_run(source: Path, folder: Path, detector: Path, asked: Settings, tell: Tell) -> Job:
    """Start a run in `folder`, or find the one that was started there with the same settings."""
    settings = read_settings(detector)
    cut(settings.k, asked, tell)
    lists = source.suffix.lower() in LISTS and not source.is_dir()
    wanted: dict[str, Any] = {
        "source": str(source),
        "base": "" if source.is_absolute() and not lists else str(Path.cwd()),
        "scorer_sha256": settings.scorer_sha256,
        "calibration_sha256": content_sha256(detector / CALIBRATION),
        "n": asked.draws(settings.n_max, settings.name),  # refuses what was not calibrated
        "epsilon": asked.epsilon,
        "delta": asked.delta,
        "seed": asked.seed,
        "aggregate": asked.aggregate,
        "block": BLOCK,
    }
    place = str(detector.resolve())
    if (folder / RUN).exists():
        try:
            job = read_job(folder, "It is written again; parts that fit are kept.")
        except InputError as error:
            tell(str(error))
            _move(folder, folder / RUN)
        else:
            _check_same(folder, job, wanted)
            if list_sha256(folder) == job.list_sha256:
                return replace(job, detector=place)
            tell(
                f"{folder / LIST} is not as it was written, so the files are listed again; parts that fit are kept."
            )
    else:
        _check_foreign(folder)
        if any(PART_NAME.fullmatch(path.name) for path in folder.iterdir()):
            tell(f"{folder / RUN} is missing and is written again; parts that fit are kept.")
    if (folder / LIST).is_dir():
        _move(folder, folder / LIST)
    extensions = modality_named(settings.modality).extensions
    count, digest = write_list(folder, find_files(source, extensions, tell))
    if not count:
        raise InputError(
            f"{source}: expected files of type {', '.join(extensions)}, found none. Check the folder."
        )
    job = Job(detector=place, files=count, list_sha256=digest, **wanted)
    stored = {"format": FORMAT, **asdict(job)}
    write_json(folder / RUN, {**stored, "sha256": sha256_of(stored)})  # last: a run without it has not begun
    return job


def cut(k: int, asked: Settings, tell: Tell) -> float:
    """What p-values are compared with; told where nothing can be flagged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NothingFlaggedWarning)
        compared = asked.cut(k)
    for entry in caught:
        tell(str(entry.message))
    return compared


def read_job(folder: Path, hint: str) -> Job:
    """The job of a run; InputError unless it is as it was written, SettingError where another version wrote it."""
    path = folder / RUN
    stored = read_json(path, what="a run", error=InputError, hint=hint)
    if isinstance(stored, dict) and (stored.get("format", 0) != FORMAT) and "scorer_sha256" in stored:
        raise SettingError(
            f"{folder} holds a run of another version of this program. Choose another folder for --out."
        )
    if not isinstance(stored, dict) or stored.pop("sha256", "") != sha256_of(stored):
        raise InputError(f"{path} is not as it was written. {hint}")
    del stored["format"]
    return Job(**stored)


def _check_same(folder: Path, job: Job, wanted: dict[str, Any]) -> None:
    other = [name for name, value in wanted.items() if getattr(job, name) != value]
    if other:
        raise SettingError(
            f"{folder} holds a run with another {' and '.join(other)} ({other[0]} = {str(getattr(job, other[0]))[:40]}, now "
            f"{str(wanted[other[0]])[:40]}). Use the same settings to go on with it, or another folder for --out; `judge` "
            "gives verdicts at another n, epsilon, delta or aggregate without scoring again."
        )


def _check_foreign(folder: Path) -> None:
    """A run begins in an empty folder, or in one that has lost nothing but its _run.json."""
    shown = [path.name for path in folder.iterdir() if path.name[0] not in "._"] if folder.is_dir() else []
    foreign = [name for name in shown if not PART_NAME.fullmatch(name)]
    if foreign:
        raise InputError(
            f"{folder} holds other files ({foreign[0][:40]}): expected a new or empty folder, or one with a run. Choose another "
            "one for --out."
        )


@dataclass
class RunFolder:
    """What there is in the folder of a run."""

    parts: list[Path] = field(default_factory=list)
    """Those that fit, in the order of the list."""
    done: Done = field(default_factory=Done)
    todo: list[Stretch] = field(default_factory=list)
    unfit: dict[Path, str] = field(default_factory=dict)
    """File -> why it is no part of the run."""
    stale: dict[Path, int] = field(default_factory=dict)
    """Part -> how many of its files have changed since."""


def look_at(
    folder: Path, job: Job, size: int, changed: Callable[[list[str], Any], int] = lambda names, table: 0
) -> RunFolder:
    """One pass over list and parts: what fits, and what is to be done, in stretches of at most `size` files."""
    state, paths, row = RunFolder(), part_paths(folder), 0
    with (folder / LIST).open("rb") as lines:
        while row < job.files:
            offset, done = lines.tell(), None
            for path in paths.pop(row, ()):
                try:
                    if done is not None:
                        raise UnfitError("there twice")
                    part, digest, table = read_part(path, job)
                    these = list(islice(lines, part.files))
                    if digest != lines_sha256(these) or (
                        part.files % job.block and row + part.files < job.files
                    ):
                        raise UnfitError("of other files")
                    if count := changed(names_in(these), table):
                        state.stale[path] = count
                    else:
                        done = part
                        state.parts.append(path)
                except UnfitError as error:
                    state.unfit[path] = str(error)
                if done is None:
                    lines.seek(offset)
            if done is None:
                count = sum(1 for _ in islice(lines, min(job.block, job.files - row)))
                if not count:
                    raise InputError(f"{folder / LIST} was cut while it was read. {UNFINISHED}")
                last = state.todo[-1] if state.todo else Stretch(-1, 0, 0)
                if last.start + last.count == row and last.count + count <= size:
                    state.todo[-1] = replace(last, count=last.count + count)
                else:
                    state.todo.append(Stretch(row, offset, count))
                row += count
            else:
                state.done += done
                row += done.files
    state.unfit |= {path: "not in its place" for left in paths.values() for path in left}
    others = (path for path in sorted(folder.glob("*.parquet")) if path.name[0] not in "._")
    state.unfit |= {path: "not a part of a run" for path in others if not PART_NAME.fullmatch(path.name)}
    return state


def changed_inputs(job: Job, worker: Worker | None) -> Callable[[list[str], Any], int]:
    """How many files of a part are not as they were when they were scored: by size and time, with a worker by content."""

    def changed(names: list[str], table: Any) -> int:
        sizes, times = table["size"].to_pylist(), table["modified_ns"].to_pylist()
        stamps = [stamp(Path(job.base, name)) for name in names]
        count = sum(now != before for now, before in zip(stamps, zip(sizes, times, strict=True), strict=True))
        if worker is None or count:
            return count
        contents = table["content"].to_pylist()
        return sum(now.content != before for now, before in zip(worker.read(names), contents, strict=True))

    return changed


def _put_aside(folder: Path, state: RunFolder, tell: Tell) -> None:
    for path in state.unfit:
        _move(folder, path)
    for path in state.stale:
        path.unlink()
    if state.unfit:
        whys = ", ".join(f"{count:,} {why}" for why, count in Counter(state.unfit.values()).items())
        first = next(iter(state.unfit)).name
        tell(
            f"{folder}: {len(state.unfit):,} of its files do not fit ({whys}; first {first}). They lie in {folder / ASIDE} now, "
            "and what is missing is scored again."
        )
    if state.stale:
        tell(
            f"{folder}: {sum(state.stale.values()):,} files have changed since they were scored; their {len(state.stale):,} "
            "parts are scored again."
        )


def _move(folder: Path, path: Path) -> None:
    """Out of the way of whoever reads the folder; nothing is deleted that this program may not have written."""
    try:
        (folder / ASIDE).mkdir(exist_ok=True)
        taken, target = 0, folder / ASIDE / path.name
        while os.path.lexists(target):
            taken += 1
            target = folder / ASIDE / f"{taken}-{path.name}"
        path.rename(target)
    except OSError as error:
        raise could_not_write(folder / ASIDE, error) from error
