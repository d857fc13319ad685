"""`detect`: Algorithm 1 on files."""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from idecode_core.cli.inputs import (
    DEFAULT_DETECTOR,
    Aggregate,
    DetectorName,
    Device,
    Draws,
    Epsilon,
    Json,
    Seed,
    complain,
    files_in,
    open_detector,
    progress_bar,
    reader,
)
from idecode_core.errors import IdecodeError, InputError, NothingFlaggedWarning

if TYPE_CHECKING:
    from idecode_core.detector import Detection, Detector

SOME_FLAGGED, ERROR = 1, 2


def detect(
    files: Annotated[list[Path], typer.Argument(help="Files, or folders of files.", show_default=False)],
    detector: DetectorName = DEFAULT_DETECTOR,
    n: Draws = 5,
    epsilon: Epsilon = 0.05,
    seed: Seed = 0,
    aggregate: Aggregate = "sum",
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Say which files are out of distribution.

    Exit status: 0 when no file is flagged, 1 when some are, 2 after an error (the other files still go through).

    \b
    Examples:
      python -m idecode_core detect photo.jpg
      python -m idecode_core detect photos/ --detector cifar10-merged --n 20 --epsilon 0.01
      python -m idecode_core detect *.png --json | jq 'select(.is_ood).file'
    """
    loaded = open_detector(detector, device)
    read, extensions = reader(loaded.scorer.modality)
    paths, problems = _expand(files, extensions)
    good: list[Path] = []

    def samples() -> Iterator[Any]:
        for path in paths:
            try:
                sample = read(path)
            except InputError as error:
                problems.append(str(error))
                continue
            good.append(path)
            yield sample

    with warnings.catch_warnings(record=True) as caught, progress_bar("scoring", len(paths)) as progress:
        warnings.simplefilter("always", NothingFlaggedWarning)
        try:
            found = loaded.detect(
                samples(), n=n, epsilon=epsilon, seed=seed, aggregate=aggregate, progress=progress
            )
        except InputError:
            if good or not problems:  # with no readable file at all, the files' own problems say it best
                raise
            found = None
    remarks = [str(entry.message) for entry in caught if entry.category is NothingFlaggedWarning]
    for sentence in (*remarks, *problems):
        complain(sentence)
    if found is not None:
        show = _print_json if as_json else _print_table
        show(loaded, found, good, seed)
    if problems:
        raise typer.Exit(ERROR)
    raise typer.Exit(SOME_FLAGGED if found is not None and found.is_ood.any() else 0)


def _expand(files: list[Path], extensions: tuple[str, ...]) -> tuple[list[Path], list[str]]:
    """Files as given, folders as the files in them; and what is wrong with a folder."""
    paths: list[Path] = []
    problems: list[str] = []
    for path in files:
        try:
            paths.extend(files_in(path, extensions) if path.is_dir() else [path])
        except IdecodeError as error:
            problems.append(str(error))
    return paths, problems


def _print_json(detector: "Detector", found: "Detection", files: list[Path], seed: int) -> None:
    for i, path in enumerate(files):
        line = {
            "file": str(path),
            "is_ood": bool(found.is_ood[i]),
            "p_value": float(found.p_values[i]),
            "score": float(found.scores[i]),
            "score_vector": found.score_vectors[i].tolist(),
            "transforms": detector.describe(found, i),
            "detector": detector.name,
            "n": found.score_vectors.shape[1],
            "epsilon": found.epsilon,
            "seed": seed,
        }
        print(json.dumps(line))


def _print_table(detector: "Detector", found: "Detection", files: list[Path], seed: int) -> None:
    n = found.score_vectors.shape[1]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("file", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("p-value", justify="right", no_wrap=True)
    table.add_column("rank", justify="right", no_wrap=True)
    for path, one in zip(files, found, strict=True):
        verdict = Text("out of distribution", style="bold yellow") if one.is_ood else Text(one.answer)
        name = str(path).encode(errors="replace").decode()  # a file name need not be valid text
        table.add_row(Text(name), verdict, f"{one.p_value:.3g}", f"{one.rank + 1:,} of {one.k + 1:,}")
    console = Console(highlight=False)
    console.print(table)
    flagged = int(found.is_ood.sum())
    summary = f" ({detector.summary})" if detector.summary else ""
    console.print(
        f"\n{flagged} of {len(files)} flagged as out of distribution at epsilon = {found.epsilon:g}, with {n} draws "
        f"each, by {detector.name}{summary}.",
        markup=False,
    )
