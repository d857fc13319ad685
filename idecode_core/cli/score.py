"""`score`: many files into Parquet, on one process, all cores, all GPUs or a cluster; goes on after a kill."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from idecode_core.cli import inputs
from idecode_core.errors import SettingError

if TYPE_CHECKING:
    from idecode_core.scale.part import Job

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
    part: Annotated[int, typer.Option(help="Files per Parquet part.")] = 1_000,
) -> None:
    """Score many files. One row per file: p-value, flag, score, score vector, or why it has none.

    With the extra [scale] on all cores, all GPUs or a cluster, else in one process; the scores are the same. Memory does
    not grow with the number of files. After a kill, the same command goes on where it was.

    \b
    Examples:
      python -m idecode_core score photos/ --out scores/ --detector cifar10-rotations
      python -m idecode_core score list.csv --out scores/ --workers 8
      python -m idecode_core score /shared/photos --out /shared/scores --address 10.0.0.1:6379
      python -c "import pandas; print(pandas.read_parquet('scores/').nsmallest(10, 'p_value'))"
    """
    from idecode_core.conformal import check_epsilon
    from idecode_core.conformal.calibration import chosen_n
    from idecode_core.folder.settings import find_detector, read_settings
    from idecode_core.modality import modality_named
    from idecode_core.scale import run

    folder = find_detector(detector)
    settings = read_settings(folder)
    check_epsilon(epsilon, settings.k)
    _check_workers(workers, address)
    job = run.open_run(
        source,
        out,
        folder,
        modality_named(settings.modality).extensions,
        n=chosen_n(n, settings.n_max, settings.name),
        epsilon=epsilon,
        delta=delta,
        seed=seed,
        aggregate=aggregate,
        part_size=part,
    )
    before = run.summary(out).files
    if before:
        inputs.complain(
            f"{out}: {before:,} of {job.files:,} files were scored before; going on with the rest."
        )
    start = time.monotonic()
    with _progress(job.files, before) as progress:
        files = _score_parts(out, job, workers, address, device, progress)
    seconds = time.monotonic() - start
    total = run.summary(out)
    typer.echo(
        f"{out}: {total.files:,} files in {total.number:,} parts, {total.flagged:,} flagged at epsilon = {epsilon:g}, "
        f"{total.failures:,} without a score (column error). {files:,} of them now, {files / max(seconds, 1e-9):,.0f} per "
        "second."
    )


def _check_workers(workers: int | None, address: str | None) -> None:
    if workers is not None and workers < 1:
        raise SettingError(f"Expected at least one worker, got {workers}.")
    if (address or (workers or 1) > 1) and find_spec("ray") is None:
        raise SettingError(
            'Several workers need Ray: pip install "idecode-studio[scale]". Leave --workers out for one process.'
        )


def _score_parts(
    out: Path,
    job: "Job",
    workers: int | None,
    address: str | None,
    device: str | None,
    progress: Callable[[int], None],
) -> int:
    """On Ray where it is installed and of use, else in this process: starting Ray takes longer than a part of small files."""
    from idecode_core.scale.run import open_parts, score_alone

    todo = open_parts(out, job)
    one_part = workers is None and job.files <= job.part_size
    if not address and (workers == 1 or one_part or find_spec("ray") is None):
        return score_alone(out, job, todo, device, progress)
    from idecode_core.scale.cluster import score_on_ray

    return score_on_ray(out, job, todo, workers=workers, address=address, device=device, progress=progress)


class _Rate(TextColumn):
    """Files per second since this run began."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f} files/s")


@contextmanager
def _progress(total: int, before: int) -> Iterator[Callable[[int], None]]:
    """A bar with rate and time left; where stderr is no terminal, a line now and then."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(total, before)
        return
    columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, speed_estimate_period=120) as bar:
        task = bar.add_task("", total=total, completed=before)
        yield lambda done: bar.update(task, completed=before + done)


def _lines(total: int, before: int) -> Callable[[int], None]:
    start = last = time.monotonic()

    def report(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < SECONDS_BETWEEN_LINES:
            return
        last = now
        rate = done / (now - start)
        left = (total - before - done) / max(rate, 1e-9)
        print(
            f"idecode: {before + done:,} of {total:,} files, {rate:,.0f} per second, {left / 60:,.0f} min left",
            file=sys.stderr,
        )

    return report
