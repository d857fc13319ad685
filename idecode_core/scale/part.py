"""One part of the work: some files are read, scored and written into one Parquet file. The same wherever it runs.

A file's draws depend on its content and the seed only, and which files go through the network together depends on the
list only: blocks of it are scored one by one. So scores are the same, bit for bit, whatever the number of workers and
wherever one part ends and the next begins.

A part's name has the hash of its bytes. Inside are the key of the run and the hash of its lines of the list, and of each
file its size, its time and the hash of its content, so that nothing else can be taken for it.
"""

import hashlib
import json
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from idecode_core.draws import Prepared
from idecode_core.errors import InputError, NothingFlaggedWarning
from idecode_core.files.read import DAMAGE, read_at_most
from idecode_core.files.write import write_bytes
from idecode_core.scale.files import Stretch, names_in, read_lines

if TYPE_CHECKING:
    from idecode_core.detector import Detector

SCHEMA = pa.schema(
    {
        "file": pa.string(),
        "p_value": pa.float64(),
        "is_ood": pa.bool_(),
        "score": pa.float64(),  # F(V(x))
        "score_vector": pa.list_(pa.float64()),  # V(x): n', F and epsilon may change without scoring again
        "error": pa.string(),  # why a file has no score; null where it has one
        "size": pa.int64(),  # bytes; null where there was no file
        "modified_ns": pa.int64(),
        "content": pa.string(),  # the key of the decoded content, which its draws come from
    }
)
PART_NAME = re.compile(r"part-(\d{10,})-([0-9a-f]{32})\.parquet")
MOST_BYTES = 2**28
"""Of one part; a file in its place may be anything."""
Progress = Callable[[int], None]
"""Called with the number of files done so far."""


@dataclass(frozen=True)
class Job:
    """Everything that determines the scores; _run.json."""

    source: str
    base: str
    """What relative paths start from; empty where there are none."""
    detector: str
    scorer_sha256: str
    calibration_sha256: str
    n: int
    epsilon: float
    delta: float | None
    seed: int
    aggregate: str
    block: int
    """Files that are scored together."""
    files: int
    list_sha256: str

    @property
    def key(self) -> str:
        """One hash of all that a row depends on, beside the file itself."""
        elsewhere = ("source", "detector", "files", "list_sha256")
        return sha256_of({name: value for name, value in asdict(self).items() if name not in elsewhere})


def sha256_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Done:
    """What has been written."""

    parts: int = 0
    files: int = 0
    failures: int = 0
    flagged: int = 0

    def __add__(self, other: "Done") -> "Done":
        return Done(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


class UnfitError(Exception):
    """Why a file cannot be a part of this run, in a few words."""


def write_part(folder: Path, job: Job, start: int, lines: list[bytes], table: pa.Table) -> Done:
    done = Done(1, len(lines), len(lines) - table["error"].null_count, pc.sum(table["is_ood"]).as_py() or 0)
    head = {"key": job.key, "lines": lines_sha256(lines), "done": asdict(done)}
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({"idecode": json.dumps(head)}), sink)
    data = sink.getvalue().to_pybytes()
    path = folder / f"part-{start:010d}-{hashlib.sha256(data).hexdigest()[:32]}.parquet"
    write_bytes(path, data)
    return done


def read_part(path: Path, job: Job) -> tuple[Done, str, pa.Table]:
    """What a part says of itself, the hash of its lines, and its rows; UnfitError unless it is whole and of this run."""
    try:
        data = read_at_most(path, MOST_BYTES)
    except OSError as error:
        raise UnfitError("cannot be read") from error
    name = PART_NAME.fullmatch(path.name)
    if name is None or name[2] != hashlib.sha256(data).hexdigest()[:32]:
        raise UnfitError("not as it was written")
    try:
        table = pq.read_table(pa.BufferReader(data))
        head = json.loads(table.schema.metadata[b"idecode"])
        if head["key"] != job.key:
            raise UnfitError("of another run")
        if not table.schema.equals(SCHEMA):
            raise UnfitError("of other columns")
        return Done(**head["done"]), head["lines"], table
    except (*DAMAGE, pa.ArrowException) as error:
        raise UnfitError("not a part of a run") from error


def part_paths(folder: Path) -> dict[int, list[Path]]:
    """The parts by the number of files before them; more than one where somebody copied them."""
    by_start: dict[int, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if name := PART_NAME.fullmatch(path.name):
            by_start.setdefault(int(name[1]), []).append(path)
    return by_start


@dataclass(frozen=True, eq=False)
class FileRead:
    """One file: what it was like before it was opened, and what was in it or why it could not be read."""

    size: int | None
    modified_ns: int | None
    outcome: Prepared | str

    @property
    def content(self) -> str | None:
        return None if isinstance(self.outcome, str) else self.outcome.key.tobytes().hex()


def stamp(path: Path) -> tuple[int | None, int | None]:
    """Size and time of a file; nothing where there is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # a name may hold a zero byte
        return None, None
    return status.st_size, status.st_mtime_ns


class Worker:
    """Holds the detector of a job and scores stretches of the list with it; writes a part after so many seconds."""

    def __init__(
        self,
        folder: Path,
        job: Job,
        device: str | None,
        seconds: float,
        network: Mapping[str, Any] | None = None,
    ) -> None:
        from idecode_core.folder.detector import load_detector

        self.folder, self.job, self.seconds = folder, job, seconds
        self.detector: Detector = load_detector(job.detector, device, **(network or {}))

    def read(self, names: Iterable[str]) -> Iterator[FileRead]:
        """Each file decoded and prepared, or the sentence that says why not."""
        for name in names:
            path = Path(self.job.base, name)
            before = stamp(path)
            try:
                (decoded,) = self.detector.scorer.decode([path])
                yield FileRead(*before, self.detector.scorer.prepare(decoded, self.job.seed))
            except InputError as error:
                yield FileRead(*before, str(error))

    def score(self, stretch: Stretch, progress: Progress = lambda _: None) -> Done:
        """Read, score and write one stretch; files are decoded batch by batch."""
        lines = read_lines(self.folder, stretch)
        return self.write(stretch.start, lines, self.read(names_in(lines)), progress)

    def what_is_left(self, stretch: Stretch) -> tuple[Done, Stretch]:
        """What a worker that was lost had written of this stretch, from its start on; and what is left of it."""
        paths, done = part_paths(self.folder), Done()
        lines = read_lines(self.folder, stretch)
        with suppress(UnfitError):
            while done.files < stretch.count and (parts := paths.get(stretch.start + done.files)):
                done += read_part(parts[0], self.job)[0]
        offset = stretch.offset + sum(map(len, lines[: done.files]))
        return done, Stretch(stretch.start + done.files, offset, stretch.count - done.files)

    def write(
        self,
        start: int,
        lines: list[bytes],
        readings: Iterable[FileRead],
        progress: Progress = lambda _: None,
    ) -> Done:
        readings, block = iter(readings), self.job.block
        done, tables, since = Done(), [], time.monotonic()
        for first in range(0, len(lines), block):

            def report(scored: int, first: int = first) -> None:
                progress(first + scored)

            here = names_in(lines[first : first + block])
            tables.append(self.table(here, islice(readings, len(here)), report))
            progress(end := first + len(here))
            if end == len(lines) or time.monotonic() - since >= self.seconds:
                table = pa.concat_tables(tables)
                done += write_part(self.folder, self.job, start + done.files, lines[done.files : end], table)
                tables, since = [], time.monotonic()
        return done

    def table(self, names: list[str], readings: Iterable[FileRead], progress: Progress) -> pa.Table:
        """One block: its good files go through the network together."""
        rows: list[dict[str, object]] = []
        good: list[dict[str, object]] = []

        def samples() -> Iterator[Prepared]:
            for name, reading in zip(names, readings, strict=True):
                row: dict[str, object] = {
                    "file": _text(name),
                    "size": reading.size,
                    "modified_ns": reading.modified_ns,
                    "content": reading.content,
                }
                rows.append(row)
                if isinstance(reading.outcome, str):
                    row["error"] = _text(reading.outcome)
                else:
                    good.append(row)
                    yield reading.outcome

        job = self.job
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NothingFlaggedWarning)  # was told before
                detection = self.detector.detect(
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
            for row, verdict, vector in zip(good, detection, detection.score_vectors, strict=True):
                row |= {
                    "p_value": verdict.p_value,
                    "is_ood": verdict.is_ood,
                    "score": verdict.score,
                    "score_vector": vector,
                }
        return pa.Table.from_pylist(rows, SCHEMA)


def lines_sha256(lines: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(lines)).hexdigest()


def _text(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()  # a file name need not be valid text
