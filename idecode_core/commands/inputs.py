"""What the commands share: options, samples from the command line, progress on stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from idecode_core.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from idecode_core.detector import Detector

DEFAULT_DETECTOR = "fashion-rotations"

DetectorName = Annotated[
    str, typer.Option("--detector", "-d", help="A detector folder, or the name of one under checkpoints/.")
]
Draws = Annotated[int, typer.Option("--n", "-n", help="Transforms drawn for each input.")]
Epsilon = Annotated[float, typer.Option(help="Bound on the false detection rate: OOD means p < epsilon.")]
Seed = Annotated[int, typer.Option(help="Seed of the draws; same seed, same input, same answer.")]
Aggregate = Annotated[str, typer.Option(help="F: sum, mean, max or sum_of_logs.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; the best there is if left out.")]
DataRoot = Annotated[
    Path | None, typer.Option(help="Folder with the datasets; else the variable IDECODE_DATA, else data/.")
]
Json = Annotated[bool, typer.Option("--json", help="One line of JSON a result, for programs.")]


def complain(sentence: str) -> None:
    """One sentence on stderr."""
    print(f"idecode: {sentence}", file=sys.stderr)


def open_detector(name: str, device: str | None) -> "Detector":
    from idecode_core.checkpoint import find_detector, load_detector

    return load_detector(find_detector(name), device)


def files_in(folder: Path, extensions: tuple[str, ...]) -> list[Path]:
    """Files with these extensions in a folder and below it, in alphabetical order."""
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in extensions and path.is_file())
    if not found:
        raise InputError(
            f"{folder}: expected files of type {', '.join(extensions)} in this folder, found none."
        )
    return found


def reader(modality: str) -> tuple[Callable[[Path], Any], tuple[str, ...]]:
    """How to read one file for a detector of this modality, and the extensions that such files have."""
    if modality == "audio":
        from idecode_core import sounds

        return lambda path: sounds.read_sound(path, name=str(path)), sounds.EXTENSIONS
    from idecode_core import images

    return lambda path: images.read_image(path, name=str(path)), images.EXTENSIONS


def samples(source: str, modality: str, data_root: Path | None) -> "list[Path] | NDArray[np.uint8]":
    """A folder of files, or a dataset of images by its name ("fashion-sample")."""
    from idecode_core.data import load_images

    if Path(source).is_dir():
        return files_in(Path(source), reader(modality)[1])
    return load_images(source, data_root).x


@contextmanager
def progress_bar(description: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr while points are scored; nothing where stderr is not a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done: bar.update(task, completed=done)
