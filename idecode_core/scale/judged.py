"""Verdicts at another n, F, epsilon or delta from the score vectors of a run: no file is read again, no model is loaded."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge
from idecode_core.conformal.settings import Settings
from idecode_core.errors import CheckpointError, InputError, SettingError
from idecode_core.files.write import check_output, check_writable, not_ours
from idecode_core.folder.manifest import NAME as CALIBRATION
from idecode_core.folder.manifest import content_sha256, read_calibration
from idecode_core.folder.settings import find_detector, read_settings
from idecode_core.scale.files import NAME as LIST
from idecode_core.scale.files import Tell, list_sha256
from idecode_core.scale.part import Job
from idecode_core.scale.run import MOST_FILES, RUN, UNFINISHED, cut, look_at, read_job

SCHEMA = pa.schema(
    {
        "file": pa.string(),
        "is_ood": pa.bool_(),
        "p_value": pa.float64(),
        "rank": pa.int64(),
        "k": pa.int64(),
        "score": pa.float64(),
        "error": pa.string(),
    }
)


def judge_scored(
    folder: Path | str,
    *,
    n: int | None = None,
    epsilon: float = 0.05,
    delta: float | None = None,
    aggregate: str | None = None,
    detector: Path | str | None = None,
    tell: Tell = warnings.warn,
) -> pa.Table:
    """The verdicts on all files that `score_files` has scored into `folder`, a row each in the order of the list.

    n and aggregate are those of the run where they are left out; n may be smaller than it was, not larger. `detector` is
    for one that has moved, or has been calibrated again: its scorer must be the one of the run.
    """
    tables = judge_parts(
        folder, n=n, epsilon=epsilon, delta=delta, aggregate=aggregate, detector=detector, tell=tell
    )
    return pa.concat_tables([SCHEMA.empty_table(), *tables])


def judge_parts(
    folder: Path | str,
    *,
    n: int | None = None,
    epsilon: float = 0.05,
    delta: float | None = None,
    aggregate: str | None = None,
    detector: Path | str | None = None,
    tell: Tell = warnings.warn,
) -> Iterator[pa.Table]:
    """`judge_scored` part by part, for runs that are larger than memory. All parts are checked before the first is judged."""
    folder = Path(folder)
    if not (folder / RUN).exists():
        raise InputError(
            f"{folder} holds no scores: expected a folder that `score` has written. Check the path."
        )
    job = read_job(folder, UNFINISHED)
    n, aggregate = job.n if n is None else n, aggregate or job.aggregate
    if not 1 <= n <= job.n:
        raise SettingError(
            f"n must lie between 1 and {job.n}, the draws that {folder} was scored with, got {n}. Score again for more."
        )
    calibration = _calibration(job, detector)
    calibration.scores(n, aggregate)  # refuses an unknown aggregate before the first line is written
    bound = cut(calibration.k, Settings(epsilon=epsilon, delta=delta), tell)
    if list_sha256(folder) != job.list_sha256:
        raise InputError(f"{folder / LIST} is not as it was written. {UNFINISHED}")
    state = look_at(folder, job, MOST_FILES)
    if state.unfit:
        path, why = next(iter(state.unfit.items()))
        raise InputError(
            f"{folder}: {len(state.unfit):,} of its files do not fit (first {path.name}: {why}). {UNFINISHED}"
        )
    if state.todo:
        tell(
            f"{folder}: {state.done.files:,} of {job.files:,} files have been scored, and are judged. {UNFINISHED}"
        )
    return (_judged(pq.read_table(path), calibration, n, bound, aggregate) for path in state.parts)


def check_table(out: Path) -> None:
    """IdecodeError unless the verdicts can be written here without a loss: a new file, or one of earlier verdicts."""
    if out.suffix != ".parquet" or not out.exists():
        check_output(out, (), ",".join(SCHEMA.names))
        return
    try:
        is_ours = pq.read_schema(out).names == SCHEMA.names
    except (OSError, pa.ArrowException):
        is_ours = False
    if not is_ours:
        raise not_ours(out)
    check_writable(out)


def _calibration(job: Job, detector: Path | str | None) -> Calibration:
    settings = read_settings(find_detector(detector or job.detector))
    if settings.scorer_sha256 != job.scorer_sha256:
        raise CheckpointError(
            f"These files were scored by another detector than {settings.folder} (scorer {job.scorer_sha256[:12]}, here "
            f"{settings.scorer_sha256[:12]}). Name that one with --detector."
        )
    if detector is None and content_sha256(settings.folder / CALIBRATION) != job.calibration_sha256:
        raise CheckpointError(
            f"{settings.folder} has been calibrated again since these files were scored. Name it with --detector to use its new "
            "calibration."
        )
    return read_calibration(settings)


def _judged(table: pa.Table, calibration: Calibration, n: int, bound: float, aggregate: str) -> pa.Table:
    """One part; files without a score have none here either."""
    good = pc.is_valid(table["score_vector"]).to_numpy()  # (files,)
    columns = {
        **dict.fromkeys(SCHEMA.names, pa.nulls(len(table))),
        "file": table["file"],
        "error": table["error"],
    }
    if good.any():
        vectors = np.stack(table["score_vector"].filter(good).to_numpy())  # (good files, n of the run)
        verdicts = judge(calibration, vectors, n=n, epsilon=bound, aggregate=aggregate)
        places = np.cumsum(good) - 1

        def spread(values: np.ndarray) -> pa.Array:
            return pa.array(values[np.maximum(places, 0)], mask=~good)

        columns |= {
            "is_ood": spread(verdicts.is_ood),
            "p_value": spread(verdicts.p_values),
            "rank": spread(verdicts.ranks),
            "k": spread(np.full(len(vectors), verdicts.k)),
            "score": spread(verdicts.scores),
        }
    return pa.table(columns).cast(SCHEMA)
