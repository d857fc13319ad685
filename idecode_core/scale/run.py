"""A run: what is to be done, what is done, and who does it. A killed run goes on where it was."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from idecode_core.conformal.calibration import chosen_n
from idecode_core.errors import InputError, SettingError
from idecode_core.files import write_json
from idecode_core.files.read import read_json
from idecode_core.folder.calibration import NAME as CALIBRATION
from idecode_core.folder.manifest import content_sha256
from idecode_core.folder.settings import read_settings
from idecode_core.scale.files import Part, find_files, parts, write_list
from idecode_core.scale.part import Done, Job, Worker, part_path, read_done

RUN = "_run.json"
PART_SIZE = 1_000
"""Files per Parquet part, and at most what each worker does again after a kill."""
Progress = Callable[[int], None]
"""Called with the number of files done so far."""


def open_run(
    source: Path,
    folder: Path,
    detector: Path,
    extensions: tuple[str, ...],
    *,
    n: int,
    epsilon: float,
    delta: float | None = None,
    seed: int,
    aggregate: str,
    part_size: int = PART_SIZE,
) -> Job:
    """Start a run in `folder`, or find the one that was started there with the same settings."""
    settings = read_settings(detector)
    chosen_n(n, settings.n_max, settings.name)  # refuses what was not calibrated
    if part_size < 1:
        raise SettingError(f"A part must have at least one file, got {part_size}.")
    wanted = {
        "source": str(source),
        "scorer_sha256": settings.scorer_sha256,
        "calibration_sha256": content_sha256(detector / CALIBRATION),
        "n": n,
        "epsilon": epsilon,
        "delta": delta,
        "seed": seed,
        "aggregate": aggregate,
        "part_size": part_size,
    }
    if (folder / RUN).exists():
        return _check_same(folder, wanted, detector)
    if not source.exists():
        raise InputError(
            f"There is no {source}: expected a folder of files, or a list of them. Check the path."
        )
    count = write_list(folder, find_files(source, extensions))
    if not count:
        raise InputError(
            f"{source}: expected files of type {', '.join(extensions)}, found none. Check the folder."
        )
    job = Job(base=str(Path.cwd()), detector=str(detector.resolve()), files=count, **wanted)  # type: ignore[arg-type]
    write_json(folder / RUN, asdict(job))  # last: a run without it has not begun
    return job


def _check_same(folder: Path, wanted: dict[str, object], detector: Path) -> Job:
    stored = read_json(folder / RUN, what="a run", error=InputError, hint="Choose a new folder for --out.")
    other = [name for name, value in wanted.items() if stored.get(name) != value]
    if other:
        raise SettingError(
            f"{folder} holds a run with another {' and '.join(other)} ({other[0]} = {str(stored.get(other[0]))[:40]}, now "
            f"{str(wanted[other[0]])[:40]}). Use the same settings to go on with it, or another folder for --out."
        )
    try:
        return Job(**{**stored, "detector": str(detector.resolve())})
    except TypeError:
        raise InputError(f"{folder / RUN} cannot be read as a run. Choose a new folder for --out.") from None


def finished(folder: Path) -> set[int]:
    """The numbers of the parts that are written."""
    names = (re.fullmatch(r"part-(\d+)\.parquet", path.name) for path in folder.iterdir())
    return {int(name[1]) for name in names if name}


def open_parts(folder: Path, job: Job) -> Iterator[Part]:
    """The parts that are still to be done."""
    done = finished(folder)
    return (part for part in parts(folder, job.part_size) if part.number not in done)


def score_alone(folder: Path, job: Job, todo: Iterable[Part], device: str | None, progress: Progress) -> int:
    """All parts in this process; the number of files scored."""
    worker: Worker | None = None
    files = 0
    for part in todo:
        worker = worker or Worker(folder, job, device)
        before = files
        files += worker.score(part, lambda points, before=before: progress(before + points)).files  # type: ignore[misc]
        progress(files)
    return files


def summary(folder: Path) -> Done:
    """All parts together."""
    done = [read_done(part_path(folder, number)) for number in finished(folder)]
    files, failures = sum(one.files for one in done), sum(one.failures for one in done)
    return Done(len(done), files, failures, sum(one.flagged for one in done))
