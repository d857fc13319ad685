"""`train`: a recipe from data to a calibrated detector folder."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from idecode_core.commands.calibrate import refuse_to_replace
from idecode_core.commands.inputs import DataRoot, Device, progress_bar
from idecode_core.commands.sounds import train_sounds

if TYPE_CHECKING:
    from idecode_core.training import EpochLog

RUNS = Path("runs")


def train(
    recipe: Annotated[
        str, typer.Argument(help="A recipe's name; a wrong one lists them.", show_default=False)
    ],
    data_root: DataRoot = None,
    device: Device = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Instead of the recipe's number of epochs.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on with an unfinished run of the same name.")] = True,
    out: Annotated[
        Path | None, typer.Option(help="The detector folder to write; checkpoints/RECIPE if left out.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite a detector that is already there.")
    ] = False,
) -> None:
    """Train a model by a recipe, calibrate it on held-out data and save it as a detector folder.

    A stopped run goes on where it was: its state is kept in runs/, under the name of the detector folder.

    \b
    Examples:
      python -m idecode_core train fashion-quick --epochs 1 --out checkpoints/mine
      python -m idecode_core train cifar10-rotations --device cuda --replace
      torchrun --nproc_per_node=4 -m idecode_core train paper-cifar10-projective
    """
    from idecode_core.audio_recipes import AUDIO_RECIPES
    from idecode_core.recipes import get_recipe
    from idecode_core.scoring import choose_device
    from idecode_core.training import Distributed
    from idecode_core.training import train as run_training
    from idecode_core.training_finish import finish, training_images

    out = out or Path("checkpoints") / recipe
    if not replace:
        refuse_to_replace(out)
    if recipe in AUDIO_RECIPES:
        train_sounds(recipe, data_root, device, epochs, resume, out)
        return
    chosen = get_recipe(recipe)
    if device is None and "LOCAL_RANK" in os.environ and choose_device().type == "cuda":
        device = f"cuda:{os.environ['LOCAL_RANK']}"  # one GPU a process under torchrun
    where = choose_device(device)
    run_folder = RUNS / out.name
    images = training_images(chosen, data_root)
    with EpochProgress(chosen.epochs if epochs is None else epochs, run_folder) as progress:
        run_training(
            chosen,
            run_folder,
            device=where,
            epochs=epochs,
            resume=resume,
            images=images,
            progress=progress.step,
        )
    if Distributed.start().rank != 0:
        return
    with progress_bar("calibrating", len(images)) as scored:
        made = finish(
            chosen,
            run_folder,
            out,
            data_root=data_root,
            images=images,
            device=where,
            progress=lambda done, total: scored(round(len(images) * done / total)),
        )
    typer.echo(
        f"{out}: trained and calibrated on {made.calibration.k:,} held-out images. Use it with --detector {out}"
    )


class EpochProgress:
    """A bar over all steps with loss and time left, and one line for each finished epoch."""

    def __init__(self, epochs: int, run_folder: Path) -> None:
        self.epochs, self.log_path = epochs, run_folder / "log.jsonl"
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
        from idecode_core.training import read_log

        log = read_log(self.log_path)
        if len(log) > epoch:
            entry = log[epoch]
            self.accuracy = (
                "-" if entry.validation_accuracy is None else f"{100 * entry.validation_accuracy:.1f} %"
            )
            self.bar.console.print(self.line(entry), highlight=False)

    def line(self, entry: "EpochLog") -> str:
        return (
            f"epoch {entry.epoch + 1}/{self.epochs}: loss {entry.loss:.4f}, validation loss {entry.validation_loss:.4f}, "
            f"accuracy {self.accuracy}, {entry.seconds:.0f} s"
        )
