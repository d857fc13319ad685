"""`train`: a recipe, or a folder of your own files, from data to a calibrated detector folder."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from idecode_core.cli.inputs import DataRoot, Device, new_place, progress_bar
from idecode_core.errors import SettingError
from idecode_core.files.names import NOUNS

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from idecode_core.folder.detector import Writer
    from idecode_core.training.run_state import EpochLog
    from idecode_core.training.tasks import Task
    from idecode_core.training.world import World

RUNS = Path("runs")


def train(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER_OR_RECIPE",
            help="A folder of your own files (or a CSV of their paths), or a recipe's name; a wrong one lists them.",
            show_default=False,
        ),
    ],
    data_root: DataRoot = None,
    device: Device = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Instead of the recipe's number of epochs.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on with an unfinished run of the same name.")] = True,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The new detector: a bare name puts it among the app's, a path there; named after the recipe or folder if left out."
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite a detector that is already there.")
    ] = False,
    audio: Annotated[bool, typer.Option("--audio", help="Your files are sounds.")] = False,
    labels: Annotated[
        str | None,
        typer.Option(help="Of your files: folders (subfolders are classes) or none; found out if left out."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="For your files: mahalanobis, neighbours or rotations (pictures), classifier (sounds); chosen if left out."
        ),
    ] = None,
    ood: Annotated[
        list[str] | None,
        typer.Option(
            help="Files that do not belong, to test with; may be given several times. Else sets that come with the project."
        ),
    ] = None,
    summary: Annotated[str, typer.Option(help="What belongs, in your own words.")] = "",
    seed: Annotated[int, typer.Option(help="Seed of the split of your files.")] = 0,
) -> None:
    """Train a model on your own files or by a recipe, calibrate it on held-out data and save it as a detector folder.

    A stopped run goes on where it was: its state is kept in runs/, under the name of the detector folder.

    \b
    Examples:
      python -m idecode_core train my-photos/ --out mine --ood other-photos/ --summary "our garden"
      python -m idecode_core train recordings/ --audio --labels folders --out mine
      python -m idecode_core train fashion-quick --epochs 1 --out checkpoints/mine
      python -m idecode_core train cifar10-rotations --device cuda --replace
      torchrun --nproc_per_node=4 -m idecode_core train paper-cifar10-projective
    """
    from idecode_core.device import choose_device
    from idecode_core.report.card import write_card
    from idecode_core.training.parts import load_parts
    from idecode_core.training.recipes import RECIPES, get_recipe
    from idecode_core.training.tasks import make_task
    from idecode_core.training.world import World

    if recipe not in RECIPES:
        from idecode_core.cli.own_data import Wanted, train_own

        source = Path(recipe)
        if not source.exists() and source.name == recipe and not source.suffix:
            try:
                get_recipe(recipe)
            except SettingError as error:
                raise SettingError(f"There is no folder {recipe} here, and no such recipe. {error}") from None
        place = new_place(out or Path(source.stem or "mine"), replace)
        wanted = Wanted(source, place, audio, labels, model, tuple(ood or ()), summary, seed, epochs, resume)
        train_own(wanted, choose_device(device or own_gpu()), RUNS)
        return
    out = new_place(out or Path(recipe), replace)
    chosen, world = get_recipe(recipe), World.join()
    task = make_task(chosen, load_parts(chosen, data_root), choose_device(device or own_gpu()))
    made = train_and_finish(task, RUNS / out.name, out, epochs=epochs, resume=resume, world=world)
    if made is None:
        return
    write_card(out)
    typer.echo(
        f"{out}: trained and calibrated on {made.calibration.k:,} held-out {NOUNS[chosen.modality]}s. Use it with "
        f"--detector {out}"
    )


def train_and_finish(
    task: "Task",
    run_folder: Path,
    out: Path,
    *,
    epochs: int | None = None,
    resume: bool,
    world: "World",
    beside: "Mapping[str, Writer] | None" = None,
    **options: Any,
) -> "Detector | None":
    """Train, calibrate and save, with bars; of several processes only the first one speaks and saves."""
    from idecode_core.report.learning_curve import learning_curve
    from idecode_core.training.finish import finish
    from idecode_core.training.loop import train as run_training

    shown = EpochProgress(epochs or task.recipe.epochs, run_folder) if world.is_first else None
    with shown or nullcontext():
        run_training(task, run_folder, epochs=epochs, resume=resume, progress=shown.step if shown else None)
    world.leave()  # the rest is for the first one alone, and may take long
    if not world.is_first:
        return None
    with progress_bar("calibrating", len(task.parts.calibration)) as progress:
        files = {**learning_curve(run_folder, task.recipe.name), **(beside or {})}
        return finish(task, run_folder, out, beside=files, progress=progress, **options)


def own_gpu() -> str | None:
    """One GPU per process under torchrun."""
    from idecode_core.device import choose_device

    if "LOCAL_RANK" in os.environ and choose_device().type == "cuda":
        return f"cuda:{os.environ['LOCAL_RANK']}"
    return None


class EpochProgress:
    """A bar over all steps with loss and time left, and one line for each finished epoch."""

    def __init__(self, epochs: int, run_folder: Path) -> None:
        self.epochs, self.run_folder = epochs, run_folder
        columns = (
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(),
            TextColumn("loss {task.fields[loss]}, accuracy {task.fields[accuracy]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
        )
        self.bar = Progress(*columns, console=Console(stderr=True))
        self.task: TaskID | None = None
        self.epoch = -1
        self.accuracy = "-"

    def __enter__(self) -> "EpochProgress":
        self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.epoch >= 0 and exception[0] is None:
            self.report(self.epoch)
        self.bar.stop()

    def step(self, epoch: int, step: int, steps: int, loss: float) -> None:
        if self.task is None:
            self.task = self.bar.add_task(
                "", total=(self.epochs - epoch) * steps, epoch="", loss="", accuracy=self.accuracy
            )
        elif epoch != self.epoch:
            self.report(self.epoch)
        self.epoch = epoch
        self.bar.update(
            self.task,
            advance=1,
            epoch=f"{epoch + 1}/{self.epochs}",
            loss=f"{loss:.3f}",
            accuracy=self.accuracy,
        )

    def report(self, epoch: int) -> None:
        """One line about a finished epoch, from the log that training has just written."""
        from idecode_core.training.run_state import read_log

        log = read_log(self.run_folder)
        if len(log) > epoch:
            self.bar.console.print(self.line(log[epoch]), highlight=False)

    def line(self, entry: "EpochLog") -> str:
        """Accuracy is that on the validation part; on the training examples where there is none."""
        validated = entry.validation_loss is not None
        accuracy = entry.validation_accuracy if validated else entry.accuracy
        self.accuracy = "-" if accuracy is None else f"{100 * accuracy:.1f} %"
        validation = f", validation loss {entry.validation_loss:.4f}" if validated else ""
        return (
            f"epoch {entry.epoch + 1}/{self.epochs}: loss {entry.loss:.4f}{validation}, accuracy {self.accuracy}, "
            f"{entry.seconds:.0f} s"
        )
