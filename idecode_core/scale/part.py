"""One part of the work: read its files, score them, write one Parquet file. The same wherever it runs.

A file's draws depend on its content and the seed only, and which files go through the network together depends on the
list only. So the scores of a part are the same, bit for bit, whatever the number of workers.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from idecode_core.detector import Detector
from idecode_core.draws import Prepared
from idecode_core.errors import InputError
from idecode_core.files import write_atomically
from idecode_core.folder.detector import load_detector
from idecode_core.scale.files import Part, read_part

SCHEMA = pa.schema(
    {
        "file": pa.string(),
        "p_value": pa.float64(),
        "is_ood": pa.bool_(),
        "score": pa.float64(),  # F(V(x))
        "score_vector": pa.list_(pa.float64()),  # V(x): n', F and epsilon may change without scoring again
        "error": pa.string(),  # why a file has no score; null where it has one
    }
)


@dataclass(frozen=True)
class Job:
    """Everything that determines the scores; _run.json."""

    source: str
    base: str
    """What relative paths start from."""
    detector: str
    scorer_sha256: str
    calibration_sha256: str
    n: int
    epsilon: float
    delta: float | None
    seed: int
    aggregate: str
    part_size: int
    files: int


@dataclass(frozen=True)
class Done:
    """A part that has been written."""

    number: int
    files: int
    failures: int
    flagged: int


def part_path(folder: Path, number: int) -> Path:
    return folder / f"part-{number:08d}.parquet"


class Worker:
    """Holds the detector of a job and scores parts with it."""

    def __init__(self, folder: Path, job: Job, device: str | None) -> None:
        self.folder, self.job = folder, job
        self.detector: Detector = load_detector(job.detector, device)

    def read(self, files: Iterable[str]) -> Iterator[Prepared | str]:
        """Each file decoded and prepared, or the sentence that says why not."""
        for file in files:
            try:
                (decoded,) = self.detector.scorer.decode([Path(self.job.base, file)])
                yield self.detector.scorer.prepare(decoded, self.job.seed)
            except InputError as error:
                yield str(error)

    def score(self, part: Part, progress: Callable[[int], None] | None = None) -> Done:
        """Read, score and write one part; files are decoded batch by batch."""
        files = read_part(self.folder, part)
        return self.write(part.number, files, self.read(files), progress)

    def write(
        self,
        number: int,
        files: list[str],
        readings: Iterable[Prepared | str],
        progress: Callable[[int], None] | None = None,
    ) -> Done:
        table = self.table(files, readings, progress)
        done = Done(
            number,
            len(files),
            len(files) - table["error"].null_count,
            int(np.sum(table["is_ood"].to_numpy() == True)),  # noqa: E712
        )
        table = table.replace_schema_metadata(
            {"idecode": json.dumps(asdict(self.job)), "done": json.dumps(asdict(done))}
        )
        write_atomically(part_path(self.folder, number), lambda path: pq.write_table(table, path))
        return done

    def table(
        self,
        files: list[str],
        readings: Iterable[Prepared | str],
        progress: Callable[[int], None] | None = None,
    ) -> pa.Table:
        errors: list[str | None] = [None] * len(files)
        good: list[int] = []

        def samples() -> Iterator[Prepared]:
            for i, reading in enumerate(readings):
                if isinstance(reading, str):
                    errors[i] = reading
                else:
                    good.append(i)
                    yield reading

        rows: list[dict[str, object]] = [{} for _ in files]
        job = self.job
        try:
            found = self.detector.detect(
                samples(),
                n=job.n,
                epsilon=job.epsilon,
                delta=job.delta,
                seed=job.seed,
                aggregate=job.aggregate,
                progress=progress,
            )
        except InputError:
            if good:
                raise
        else:
            for i, verdict, vector in zip(good, found, found.score_vectors, strict=True):
                rows[i] = {
                    "p_value": verdict.p_value,
                    "is_ood": verdict.is_ood,
                    "score": verdict.score,
                    "score_vector": vector,
                }
        for row, file, error in zip(rows, files, errors, strict=True):
            row["file"] = file.encode(
                "utf-8", "backslashreplace"
            ).decode()  # a file name need not be valid text
            row["error"] = error and error.encode("utf-8", "backslashreplace").decode()
        return pa.Table.from_pylist(rows, SCHEMA)


def read_done(path: Path) -> Done:
    """What a part says of itself; reads its head only."""
    return Done(**json.loads(pq.read_schema(path).metadata[b"done"]))
