"""`score-sets`: the scores that every table and figure is made of."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idecode_core.cli.inputs import DataRoot, progress_bars
from idecode_core.errors import CheckpointError

if TYPE_CHECKING:
    from idecode_core.evaluation.sets import SetToScore
    from idecode_core.folder.settings import FolderSettings


def score_sets(
    detector: Annotated[
        str,
        typer.Argument(help="A detector folder, or the name of one under checkpoints/.", show_default=False),
    ],
    data_root: DataRoot = None,
    id_points: Annotated[int, typer.Option(min=1, help="At most this many iD test points.")] = 2000,
    ood_points: Annotated[int, typer.Option(min=1, help="At most this many points of each OOD set.")] = 1000,
    draws: Annotated[
        int, typer.Option(min=20, help="Draws per point; every 20 are one run of the tables.")
    ] = 100,
    without_familiarity: Annotated[
        bool, typer.Option(help="Also store scores of the base NCM less familiarity, to compare.")
    ] = False,
) -> None:
    """Score the test sets with a detector and store the score vectors, some draws per point, beside it.

    A set that is already stored is left alone, so a stopped run goes on where it was. Writes the card again. Numbers of
    points are for pictures; of sounds, all clips are scored.

    \b
    Examples:
      python -m idecode_core score-sets cifar10-rotations --data-root data
      python -m idecode_core score-sets checkpoints/esc50-animals
    """
    from idecode_core.evaluation.ablations import ABLATIONS
    from idecode_core.evaluation.score_sets import score_test_sets
    from idecode_core.folder.settings import find_detector, read_settings
    from idecode_core.report.card import write_card

    folder = find_detector(detector)
    settings = read_settings(folder)
    siblings = sorted(path.parent for path in folder.resolve().parent.glob("*/config.json"))
    with progress_bars() as report:
        names = score_test_sets(
            folder,
            sets_of(settings, data_root, id_points, ood_points),
            draws=draws,
            ablations=ABLATIONS if settings.takes_sounds else (),
            without_familiarity=without_familiarity,
            members=siblings,
            report=report,
        )
    write_card(folder)
    typer.echo(f"{folder}: scores of {', '.join(names)} are stored.")


def sets_of(
    settings: "FolderSettings", data_root: Path | None, id_points: int, ood_points: int
) -> "Iterator[SetToScore]":
    """The sets that belong to the dataset a detector names as its own; for sounds, to the recipe that it was trained by."""
    from idecode_core.evaluation.sets import image_sets, sound_sets
    from idecode_core.folder.training_record import read_training
    from idecode_core.training.parts import load_parts
    from idecode_core.training.recipes import get_recipe

    if settings.dataset and not settings.takes_sounds:
        return image_sets(settings.dataset, data_root, id_points, ood_points)
    members = (str(name).partition("@")[0] for name in settings.scorer.get("names", ()))  # they lie beside it
    folders = [settings.folder, *(settings.folder.parent / name for name in members)]
    record = next(filter(None, map(read_training, folders)), None)
    if not settings.dataset or record is None:
        raise CheckpointError(
            f"{settings.name} has no test sets of its own: expected a detector of a public dataset, as `train` and `merge` "
            f"write them. For your own data use `python -m idecode_core evaluate --detector {settings.folder} --id FOLDER "
            "--ood FOLDER`."
        )
    recipe = get_recipe(record.recipe)
    parts = load_parts(recipe, data_root)
    assert parts.test is not None  # sounds always have a test part
    return sound_sets(
        f"{recipe.dataset}-{recipe.shows.part or 'test'}", parts.test, parts.outside, parts.calibration
    )
