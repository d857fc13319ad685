"""What the commands share: options, and progress on stderr."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, TaskID

from idecode_core.files.names import printable

if TYPE_CHECKING:
    from idecode_core.detector import Detector

DEFAULT_DETECTOR = "fashion-rotations"
SOME_FLAGGED, ERROR = 1, 2  # exit statuses

DetectorName = Annotated[
    str, typer.Option("--detector", "-d", help="A detector folder, or the name of one under checkpoints/.")
]
Draws = Annotated[
    int | None,
    typer.Option(
        "--n", "-n", help="Transforms drawn for each input; 5, or 1 where none are drawn, if left out."
    ),
]
Epsilon = Annotated[float, typer.Option(help="Bound on the false detection rate: OOD means p < epsilon.")]
Delta = Annotated[
    float | None,
    typer.Option(help="Keep the rate for a share 1 - delta of all calibration sets, not only on average."),
]
Seed = Annotated[int, typer.Option(help="Seed of the draws; same seed, same input, same answer.")]
Aggregate = Annotated[str, typer.Option(help="F: sum, mean, max or sum_of_logs.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; the best there is if left out.")]
DataRoot = Annotated[
    Path | None, typer.Option(help="Folder with the datasets; else the variable IDECODE_DATA, else data/.")
]


def place_told(text: str) -> Path:
    """A bare name, or a path: `./mine` and `mine/` are paths, of which `Path` alone would make the bare name."""
    path = Path(text)
    return path if text == path.name or len(path.parts) > 1 else path.absolute()


NewDetector = Annotated[
    Path,
    typer.Option(
        parser=place_told,
        metavar="PATH",
        help="The new detector: a bare name puts it among the app's, a path there.",
        show_default=False,
    ),
]
Replace = Annotated[bool, typer.Option("--replace", help="Put it in the place of a detector that is there.")]
Model = Annotated[
    str | None,
    typer.Option(
        help="For a detector around your own network: module:function that gives it. Runs that code.",
        show_default=False,
    ),
]
TrustProgram = Annotated[
    bool,
    typer.Option(
        "--trust-program", help="Open a stored torch.export program, which can run its maker's code."
    ),
]


def one_format(context: typer.Context, given: bool) -> bool:
    """Of --json and --csv at most one: whichever comes second finds the first among what was read before."""
    if given and (context.params.get("as_json") or context.params.get("as_csv")):
        raise typer.BadParameter("expected --json or --csv, got both. Leave one out.")
    return given


Json = Annotated[
    bool, typer.Option("--json", callback=one_format, help="One line of JSON per result, for programs.")
]
Csv = Annotated[
    bool,
    typer.Option("--csv", callback=one_format, help="A CSV with a line of titles, for spreadsheets."),
]
AllowTrainingFiles = Annotated[
    bool,
    typer.Option(
        "--allow-training-files",
        help="Take files that the detector was made of; the numbers then flatter it.",
    ),
]


def complain(sentence: str) -> None:
    """One sentence on stderr; names of files in it cannot move the cursor."""
    print(f"idecode: {printable(sentence)}", file=sys.stderr)


def told(sentence: str, record: Mapping[str, Any], as_json: bool, as_csv: bool) -> None:
    """One result: a sentence for people, or its record for programs."""
    if not print_rows([record], as_json=as_json, as_csv=as_csv):
        typer.echo(sentence)


def open_detector(
    name: str, device: str | None, model: str | None = None, trust_program: bool = False
) -> "Detector":
    from idecode_core.folder.detector import load_detector
    from idecode_core.folder.settings import find_detector

    return load_detector(find_detector(name), device, model=model, trust_program=trust_program)


def print_rows(
    rows: Sequence[Mapping[str, Any]], *, as_json: bool = False, as_csv: bool = False, titles: bool = True
) -> bool:
    """Rows of equal columns on stdout, for programs; False where neither format was asked for, and people are to be told."""
    if as_json:
        for row in rows:
            print(json.dumps({key: _in_json(value) for key, value in row.items()}, default=str))
    elif as_csv and rows:
        from idecode_core.files.names import csv_text

        sys.stdout.write(csv_text(rows, titles))
    sys.stdout.flush()
    return as_json or as_csv


def _in_json(value: Any) -> Any:
    """JSON has no word for NaN and infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def progress_bars(shown: bool = True) -> Iterator[Callable[[str, int, int], None]]:
    """Bars on stderr for work in several parts: call with (part, points done, points). Nothing is shown before the first call."""
    bar = Progress(console=Console(stderr=True), disable=not shown)
    tasks: dict[tuple[str, int], TaskID] = {}

    def report(part: str, done: int, total: int) -> None:
        if (part, total) not in tasks:
            bar.start()
            tasks[part, total] = bar.add_task(part, total=total)
        bar.update(tasks[part, total], completed=done)

    try:
        yield report
    finally:
        if tasks:
            bar.stop()
