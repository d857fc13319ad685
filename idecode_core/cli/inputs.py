"""What the commands share: options, samples from the command line, progress on stderr."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from idecode_core.errors import CheckpointError, DataError, InputError
from idecode_core.files.find import expanded
from idecode_core.files.names import NOUNS, printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from idecode_core.detector import Detector

DEFAULT_DETECTOR = "fashion-rotations"

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
NewDetector = Annotated[
    Path,
    typer.Option(
        help="The new detector: a bare name puts it among the app's, a path there.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One line of JSON per result, for programs.")]


def new_place(out: Path, replace: bool = False) -> Path:
    """Where the new detector goes; one that is there is never overwritten by accident."""
    from idecode_core.folder.settings import place_for_new

    place = place_for_new(out)
    if not replace and (place / "config.json").exists():
        raise CheckpointError(
            f"{place} already holds a detector: expected a new folder; choose another for --out."
        )
    return place


def complain(sentence: str) -> None:
    """One sentence on stderr; names of files in it cannot move the cursor."""
    print(f"idecode: {printable(sentence)}", file=sys.stderr)


def open_detector(name: str, device: str | None) -> "Detector":
    from idecode_core.folder.detector import load_detector
    from idecode_core.folder.settings import find_detector

    return load_detector(find_detector(name), device)


def samples(source: str, modality: str, data_root: Path | None) -> "Sequence[Any] | NDArray[np.uint8]":
    """A folder of files, or a dataset by its name ("fashion-sample")."""
    from idecode_core.modality import modality_named

    folder, noun = Path(source), NOUNS[modality]
    if folder.is_dir():
        return expanded(folder, modality_named(modality).extensions)
    if folder.is_file():
        raise InputError(f"{source} is a file: expected a folder of {noun}s. Put it into one, and give that.")
    if folder.name != source:  # no dataset has a slash in its name
        raise InputError(f"There is no folder {source}: expected a folder of {noun}s. Check the path.")
    try:
        return modality_named(modality).load(source, data_root)
    except DataError:
        from idecode_core.data import data_root as find_root
        from idecode_core.image.fetch import SOURCES

        if (find_root(data_root) / f"{source}.npz").exists() or source.rpartition("-")[0] in SOURCES:
            raise  # damaged, or to be fetched: the error says so
        raise InputError(
            f"{source!r} is not here, neither as a folder nor as a dataset: expected a folder of {noun}s, or a dataset's "
            "name. Check the name; `python -m idecode_core data check` lists the datasets."
        ) from None


def readable(paths: Iterable[Path], modality: str) -> Iterator[Any]:
    """Decoded files, one after the other; of one that cannot be read is told why, and it is passed over."""
    from idecode_core.modality import modality_named

    read = modality_named(modality).read
    for path in paths:
        try:
            yield read(path, str(path))
        except InputError as error:
            complain(f"{error} It is left out.")


@contextmanager
def progress_bar(description: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr while points are scored; nothing where stderr is not a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def progress_bars(shown: bool = True) -> Iterator[Callable[[str, int, int], None]]:
    """Bars on stderr for work in several parts: call with (part, points done, points)."""
    with Progress(console=Console(stderr=True), disable=not shown) as bar:
        tasks: dict[tuple[str, int], TaskID] = {}

        def report(part: str, done: int, total: int) -> None:
            if (part, total) not in tasks:
                tasks[part, total] = bar.add_task(part, total=total)
            bar.update(tasks[part, total], completed=done)

        yield report
