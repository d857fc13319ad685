"""`python -m idecode_core reproduce NAME` and `score-sets FOLDER`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, TaskID

from idecode_core.cards import write_card
from idecode_core.checkpoint import read_config
from idecode_core.errors import SettingError
from idecode_core.experiments.curves import auroc_vs_n, tnr_vs_n
from idecode_core.experiments.false_detections import fdr
from idecode_core.experiments.results import Section, write_section
from idecode_core.experiments.scores import DRAWS, ID_POINTS, OOD_POINTS, score_test_sets
from idecode_core.experiments.softmax import sbp, store_softmax_scores
from idecode_core.experiments.tables import fashion, merged, svhn, table1, transform_sets
from idecode_core.training_finish import read_training

EXPERIMENTS: dict[str, Callable[[Path], Section]] = {
    "table1": table1,
    "auroc-vs-n": auroc_vs_n,
    "tnr-vs-n": tnr_vs_n,
    "fdr": fdr,
    "transform-sets": transform_sets,
    "merged": merged,
    "sbp": sbp,
    "svhn": svhn,
    "fashion": fashion,
}


def reproduce(names: list[str], root: Path, results: Path) -> list[Section]:
    """Recompute the named experiments ("all" for every one) and write their sections."""
    chosen = list(EXPERIMENTS) if names == ["all"] else names
    unknown = [name for name in chosen if name not in EXPERIMENTS]
    if unknown:
        raise SettingError(
            f"No experiment is called {unknown[0]!r}; expected one of {', '.join(EXPERIMENTS)}, or all."
        )
    sections = []
    for name in chosen:
        section = EXPERIMENTS[name](root)
        write_section(results, section)
        sections.append(section)
    return sections


def dataset_of(folder: Path) -> str:
    """The iD dataset of a detector folder: from its training record, else the first part of its name."""
    training = read_training(folder)
    return training.dataset if training else folder.name.split("-")[0]


def reproduce_command(
    names: Annotated[list[str], typer.Argument(help=f"{', '.join(EXPERIMENTS)}, or all.")],
    checkpoints: Annotated[
        Path, typer.Option(help="Folder with the detectors and their stored scores.")
    ] = Path("checkpoints"),
    results: Annotated[Path, typer.Option(help="The file whose sections are written.")] = Path("RESULTS.md"),
) -> None:
    """Recompute tables and figures from stored scores, and write their sections of RESULTS.md."""
    for section in reproduce(names, checkpoints, results):
        typer.echo(section.markdown())


def score_sets_command(
    folder: Annotated[Path, typer.Argument(help="A detector folder.")],
    data_root: Annotated[Path | None, typer.Option(help="Folder with the datasets.")] = None,
    id_points: Annotated[int, typer.Option(help="At most this many iD test points.")] = ID_POINTS,
    ood_points: Annotated[int, typer.Option(help="At most this many points of each OOD set.")] = OOD_POINTS,
    draws: Annotated[int, typer.Option(help="Draws a point; five runs of 20.")] = DRAWS,
) -> None:
    """Score the test sets with a detector and store the score vectors beside it; goes on where it was stopped."""
    dataset = dataset_of(folder)
    siblings = sorted(path.parent for path in folder.resolve().parent.glob("*/config.json"))
    with Progress() as bar:
        tasks: dict[str, TaskID] = {}

        def report(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done)

        score_test_sets(
            folder,
            dataset,
            data_root=data_root,
            id_points=id_points,
            ood_points=ood_points,
            draws=draws,
            members=siblings,
            report=report,
        )
    if read_config(folder)["scorer"].get("classes"):
        store_softmax_scores(folder, dataset, data_root=data_root, id_points=id_points, ood_points=ood_points)
    write_card(folder)
