"""`detect`: Algorithm 1 on files."""

import math
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from idecode_core.cli import inputs
from idecode_core.errors import IdecodeError, InputError, NothingFlaggedWarning
from idecode_core.files.find import expanded
from idecode_core.files.names import printable
from idecode_core.files.shown import progress_bar

if TYPE_CHECKING:
    from idecode_core.detector import Detection, Detector

FILES_PER_BATCH = 32
"""Lines come in groups of this size: large enough for the network, small enough to watch."""


def detect(
    files: Annotated[
        list[Path], typer.Argument(help="Files, folders of files, or globs.", show_default=False)
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
    as_json: inputs.Json = False,
    as_csv: inputs.Csv = False,
) -> None:
    """Say which files are out of distribution.

    Exit status: 0 when no file is flagged, 1 when some are, 2 after an error (the other files still go through).

    \b
    Examples:
      python -m idecode_core detect photo.jpg
      python -m idecode_core detect photos/ --detector cifar10-pretrained --n 20 --epsilon 0.01
      python -m idecode_core detect *.png --json | jq 'select(.is_ood).file'
    """
    from idecode_core.conformal.settings import Settings
    from idecode_core.folder.settings import find_detector, read_settings
    from idecode_core.modality import Reading, modality_named
    from idecode_core.scorer import chunks

    loaded = inputs.open_detector(detector, device, model, trust_program)
    identity = read_settings(find_detector(detector)).scorer_sha256
    n = Settings(n).draws(loaded.calibration.n_max, loaded.name)
    modality = modality_named(loaded.scorer.modality)
    paths, problems = _expand(files, modality.extensions)
    for sentence in problems:
        inputs.complain(sentence)
    for_programs = as_json or as_csv
    show = _Records(identity, seed, as_csv) if for_programs else _Lines(loaded.calibration.k)
    told: set[str] = set()
    flagged = judged = 0
    with _bar(len(paths)) as progress:
        for batch in chunks(paths, FILES_PER_BATCH):
            read = Reading(batch, modality)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", NothingFlaggedWarning)
                try:
                    detection = loaded.detect(
                        read, n=n, epsilon=epsilon, delta=delta, seed=seed, aggregate=aggregate
                    )
                except InputError:
                    if read.good or not read.failed:
                        raise
                    detection = None  # with no readable file at all, the files' own problems say it best
            remarks = {str(entry.message) for entry in caught if entry.category is NothingFlaggedWarning}
            for sentence in (*(remarks - told), *read.failed):
                inputs.complain(sentence)
            told |= remarks
            problems += read.failed
            if detection is not None:
                for i, path in enumerate(read.good):
                    show(loaded, detection, i, path)
                flagged, judged = flagged + int(detection.is_ood.sum()), judged + len(read.good)
            progress(judged + len(problems))
    if judged and not for_programs:
        summary = f" ({loaded.summary})" if loaded.summary else ""
        sure = "" if delta is None else f" (kept by {1 - delta:.3g} of all calibration sets)"
        Console(highlight=False).print(
            f"\n{flagged} of {judged} flagged as out of distribution at epsilon = {epsilon:g}{sure}, with {n} draws each, by "
            f"{loaded.name}{summary}.",
            markup=False,
        )
    if not paths and not problems:
        raise InputError("Expected at least one file, got none; add files or check the folder.")
    if problems:
        raise typer.Exit(inputs.ERROR)
    raise typer.Exit(inputs.SOME_FLAGGED if flagged else 0)


def _bar(total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Where the lines themselves go to a terminal, they show how far it is."""
    return nullcontext(lambda done: None) if sys.stdout.isatty() else progress_bar("scoring", total)


def _expand(files: list[Path], extensions: tuple[str, ...]) -> tuple[list[Path], list[str]]:
    """Files as given, folders and globs as the files in them; and what is wrong with one. A shell expands most globs by
    itself, but not quoted ones, and not on every system."""
    paths: list[Path] = []
    problems: list[str] = []
    for path in files:
        try:
            paths.extend(expanded(path, extensions))
        except IdecodeError as error:
            problems.append(str(error))
    return paths, problems


class _Records:
    """A line of JSON or of CSV for each file, with all that a program needs to check the verdict."""

    def __init__(self, identity: str, seed: int, as_csv: bool) -> None:
        self.identity, self.seed, self.as_csv, self.empty = identity, seed, as_csv, True

    def __call__(self, detector: "Detector", detection: "Detection", i: int, path: Path) -> None:
        verdict = detection[i]
        record: dict[str, Any] = {
            "file": str(path),
            "is_ood": verdict.is_ood,
            "p_value": verdict.p_value,
            "rank": verdict.rank,
            "k": verdict.k,
            "score": float(detection.scores[i]),
            "threshold": detection.threshold if math.isfinite(detection.threshold) else None,
            "detector": detector.name,
            "scorer_sha256": self.identity,
            "n": detection.score_vectors.shape[1],
            "epsilon": detection.promised,
            "delta": detection.delta,
            "seed": self.seed,
        }
        if not self.as_csv:
            record["score_vector"] = detection.score_vectors[i].tolist()
            record["transforms"] = detector.describe(detection, i)
        inputs.print_rows([record], as_json=not self.as_csv, as_csv=self.as_csv, titles=self.empty)
        self.empty = False


class _Lines:
    """A table that grows: the name comes last, so that no width has to be known before."""

    def __init__(self, k: int) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.rank_width = len(f"{k + 1:,} of {k + 1:,}")
        self.empty = True

    def __call__(self, detector: "Detector", detection: "Detection", i: int, path: Path) -> None:
        if self.empty:
            titles = f"{'verdict':19}  {'p-value':>8}  {'rank':>{self.rank_width}}  file"
            self.console.print(Text(titles, style="bold"))
            self.empty = False
        verdict = detection[i]
        rank = f"{verdict.rank + 1:,} of {verdict.k + 1:,}"
        answer = "out of distribution" if verdict.is_ood else verdict.answer
        line = Text(f"{answer:19}", style="bold yellow" if verdict.is_ood else "")
        name = printable(str(path).encode(errors="replace").decode())  # a file name need not be valid text
        self.console.print(
            line.append(
                f"  {verdict.p_value:>8.3g}  {rank:>{self.rank_width}}  {name}", style="not bold default"
            )
        )
        self.console.file.flush()
