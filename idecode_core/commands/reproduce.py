"""`reproduce`: the paper's tables and figures from stored scores; `score-sets`: the scores that they are made of."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, TaskID

from idecode_core.commands.inputs import DataRoot
from idecode_core.commands.sounds import score_sound_sets


def reproduce(
    names: Annotated[
        list[str], typer.Argument(help="Experiments, or all; a wrong name lists them.", show_default=False)
    ],
    checkpoints: Annotated[
        Path, typer.Option(help="Folder with the detectors and their stored scores.")
    ] = Path("checkpoints"),
    results: Annotated[Path, typer.Option(help="The file whose sections are written.")] = Path("RESULTS.md"),
) -> None:
    """Recompute tables and figures from stored scores, and write their sections of RESULTS.md.

    \b
    Examples:
      python -m idecode_core reproduce table1
      python -m idecode_core reproduce all
    """
    from idecode_core.experiments import reproduce as experiments

    for section in experiments.reproduce(names, checkpoints, results):
        typer.echo(section.markdown())
    typer.echo(f"Written to {results}.")


def score_sets(
    folder: Annotated[Path, typer.Argument(help="A detector folder.", show_default=False)],
    data_root: DataRoot = None,
    id_points: Annotated[int, typer.Option(min=1, help="At most this many iD test points.")] = 2000,
    ood_points: Annotated[int, typer.Option(min=1, help="At most this many points of each OOD set.")] = 1000,
    without_familiarity: Annotated[
        bool, typer.Option(help="Also store scores of the base NCM less familiarity, to compare.")
    ] = False,
) -> None:
    """Score the test sets with a detector and store the score vectors, 100 draws a point, beside it.

    A set that is already stored is left alone, so a stopped run goes on where it was. Writes the card anew.

    \b
    Example:
      python -m idecode_core score-sets checkpoints/cifar10-rotations --data-root data
    """
    from idecode_core.cards import write_card
    from idecode_core.checkpoint import read_config
    from idecode_core.experiments.familiarity import score_without_familiarity
    from idecode_core.experiments.scores import score_test_sets
    from idecode_core.experiments.softmax import store_softmax_scores
    from idecode_core.training_finish import read_training

    config = read_config(folder)
    if config.get("modality") == "audio":
        score_sound_sets(folder, data_root)
        return
    training = read_training(folder)
    dataset = training.dataset if training else folder.name.split("-")[0]
    siblings = sorted(path.parent for path in folder.resolve().parent.glob("*/config.json"))
    with Progress(console=Console(stderr=True)) as bar:
        tasks: dict[str, TaskID] = {}

        def report(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done)

        found = score_test_sets(
            folder,
            dataset,
            data_root=data_root,
            id_points=id_points,
            ood_points=ood_points,
            members=siblings,
            report=report,
        )
    if config["scorer"].get("classes"):
        store_softmax_scores(folder, dataset, data_root=data_root, id_points=id_points, ood_points=ood_points)
    if without_familiarity:
        score_without_familiarity(folder, data_root=data_root)
    write_card(folder)
    typer.echo(f"{folder}: scores of {', '.join(score_set.name for score_set in found)} are stored.")
