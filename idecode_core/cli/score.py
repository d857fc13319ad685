"""`score`: many files into Parquet, on one process, all cores, all GPUs or a cluster; goes on after a kill.

`judge`: verdicts at another n, F, epsilon or delta from what `score` has stored.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from idecode_core.cli import inputs
from idecode_core.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


SECONDS_BETWEEN_LINES = 30.0


def score(
    source: Annotated[
        Path,
        typer.Argument(
            help="A folder of files, or a list: .txt, or .csv with a column file.", show_default=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for the Parquet parts; a run that was begun there goes on.", show_default=False
        ),
    ],
    detector: inputs.DetectorName = inputs.DEFAULT_DETECTOR,
    n: inputs.Draws = None,
    epsilon: inputs.Epsilon = 0.05,
    delta: inputs.Delta = None,
    seed: inputs.Seed = 0,
    aggregate: inputs.Aggregate = "sum",
    device: inputs.Device = None,
    model: inputs.Model = None,
    trust_program: inputs.TrustProgram = False,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Workers; one per GPU or core if left out. 1 is this process alone.", show_default=False
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="Address of a Ray cluster that sees the same files.", show_default=False),
    ] = None,
    save_every: Annotated[
        float, typer.Option(help="Seconds after which a worker writes what it has scored.")
    ] = 30.0,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read scored files again; score those whose content has changed.")
    ] = False,
    as_json: inputs.Json = False,
    as_csv: inputs.Csv = False,
) -> None:
    """Score many files. One row per file: p-value, flag, score, score vector, or why it has none.

    With the extra [scale] on all cores, all GPUs or a cluster, else in one process; the scores are the same. Memory does
    not grow with the number of files. After a kill, the same command goes on where it was; what is damaged, or was scored
    from a file that has changed since, is scored again. `judge` gives verdicts at another n or epsilon.

    \b
    Examples:
      python -m idecode_core score photos/ --out scores/ --detector cifar10-rotations
      python -m idecode_core score list.csv --out scores/ --workers 8
      python -m idecode_core score /shared/photos --out /shared/scores --address 10.0.0.1:6379
      python -c "import pandas; print(pandas.read_parquet('scores/').nsmallest(10, 'p_value'))"
    """
    from idecode_core.scale.run import score_files

    start = time.monotonic()
    with _progress() as progress:
        total = score_files(
            source,
            out,
            detector,
            n=n,
            epsilon=epsilon,
            delta=delta,
            seed=seed,
            aggregate=aggregate,
            device=device,
            model=model,
            trust_program=trust_program,
            workers=workers,
            address=address,
            seconds=save_every,
            verify=verify,
            progress=progress,
            tell=inputs.complain,
        )
    seconds = time.monotonic() - start
    inputs.told(
        f"{out}: {total.files:,} files in {total.parts:,} parts, {total.flagged:,} flagged at epsilon = {epsilon:g}, "
        f"{total.failures:,} without a score (column error). {total.now:,} of them now, "
        f"{total.now / max(seconds, 1e-9):,.1f} per second.",
        {"folder": str(out), **vars(total), "epsilon": epsilon, "delta": delta, "seconds": seconds},
        as_json,
        as_csv,
    )


class _Rate(TextColumn):
    """Files per second since this run began."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.1f} files/s")


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar with rate and time left; where stderr is no terminal, a line now and then."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, speed_estimate_period=120) as bar:
        task = bar.add_task("", total=None)

        def report(done: int, files: int) -> None:
            if bar.tasks[0].total is None:  # what was scored before says nothing of the speed
                bar.reset(task, total=files, completed=done)
            bar.update(task, completed=done)

        yield report


def _lines() -> Callable[[int, int], None]:
    start = last = time.monotonic()
    before: int | None = None

    def report(done: int, files: int) -> None:
        nonlocal start, last, before
        now = time.monotonic()
        if before is None:
            start, before = now, done
        if done == before or now - last < SECONDS_BETWEEN_LINES:
            return
        last = now
        rate = (done - before) / max(now - start, 1e-9)
        left = (files - done) / rate
        words = f"{left / 60:,.0f} min" if left >= 100 else f"{left:,.0f} s"
        inputs.complain(f"{done:,} of {files:,} files, {rate:,.1f} per second, {words} left")

    return report


def judge(
    folder: Annotated[Path, typer.Argument(help="A folder that `score` has written.", show_default=False)],
    n: Annotated[
        int | None,
        typer.Option("--n", "-n", help="Draws of each file to use; all that were scored if left out."),
    ] = None,
    epsilon: inputs.Epsilon = 0.05,
    delta: inputs.Delta = None,
    aggregate: Annotated[
        str | None, typer.Option(help="F: sum, mean, max or sum_of_logs; as it was scored if left out.")
    ] = None,
    detector: Annotated[
        str | None,
        typer.Option("--detector", "-d", help="Where the detector has moved, or was calibrated again."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the rows to this .csv or .parquet file.", show_default=False)
    ] = None,
    as_json: inputs.Json = False,
    as_csv: Annotated[
        bool,
        typer.Option("--csv", callback=inputs.one_format, help="As without it: rows of CSV on stdout."),
    ] = False,
) -> None:
    """Verdicts at another n, epsilon, delta or F for files that were scored before; nothing is scored again.

    Without --out and --json the rows are printed as CSV. Exit status: 0 when no file is flagged, 1 when some are, 2 after an
    error.

    \b
    Examples:
      python -m idecode_core judge scores/ --epsilon 0.01 --out verdicts.csv
      python -m idecode_core judge scores/ --n 1 --delta 0.1 --json | jq 'select(.is_ood).file'
    """
    from idecode_core.files import write_atomically
    from idecode_core.scale.judged import check_table, judge_parts

    if out is not None:
        if as_json or as_csv:
            raise InputError("--out writes the rows to a file: leave --json and --csv out, or --out.")
        if out.suffix not in (".csv", ".parquet"):
            raise InputError(f"{out}: expected a name that ends in .csv or .parquet. Choose one for --out.")
        if out.resolve().parent == folder.resolve():
            raise InputError(f"{out} would lie among the scored parts. Choose another folder for --out.")
        check_table(out)
    tables = judge_parts(
        folder,
        n=n,
        epsilon=epsilon,
        delta=delta,
        aggregate=aggregate,
        detector=detector,
        tell=inputs.complain,
    )
    files = flagged = failures = 0

    def counted() -> "Iterator[pa.Table]":
        nonlocal files, flagged, failures
        for table in tables:
            files += len(table)
            flagged += sum(table["is_ood"].drop_null().to_pylist())
            failures += len(table) - table["error"].null_count
            yield table

    parts = counted()
    settings = {"epsilon": epsilon, "delta": delta}
    if as_json:
        for table in parts:
            inputs.print_rows([{**row, **settings} for row in table.to_pylist()], as_json=True)
    elif out is None:
        _write_csv(parts, sys.stdout)
    elif out.suffix == ".csv":
        write_atomically(out, lambda path: _to_csv(parts, path))
    else:
        write_atomically(out, lambda path: _to_parquet(parts, path))
    for _ in parts:  # nothing is left, unless nothing was asked for
        pass
    inputs.complain(
        f"{flagged:,} of {files - failures:,} files flagged at epsilon = {epsilon:g}; {failures:,} more have no score."
    )
    raise typer.Exit(inputs.SOME_FLAGGED if flagged else 0)


def _write_csv(tables: "Iterable[pa.Table]", file: TextIO) -> None:
    from idecode_core.files.names import csv_text
    from idecode_core.scale.judged import SCHEMA

    file.write(",".join(SCHEMA.names) + "\n")
    file.writelines(csv_text(table.to_pylist(), titles=False) for table in tables)


def _to_csv(tables: "Iterable[pa.Table]", path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        _write_csv(tables, file)


def _to_parquet(tables: "Iterable[pa.Table]", path: Path) -> None:
    import pyarrow.parquet as pq

    from idecode_core.scale.judged import SCHEMA

    with pq.ParquetWriter(path, SCHEMA) as writer:
        for table in tables:
            writer.write_table(table)
