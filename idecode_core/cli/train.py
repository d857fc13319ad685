"""`train`: a recipe, or a folder of your own files, from data to a calibrated detector folder."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from idecode_core.cli.inputs import (
    Csv,
    DataRoot,
    Device,
    Json,
    Replace,
    complain,
    place_told,
    print_rows,
    progress_bars,
    told,
)
from idecode_core.errors import SettingError
from idecode_core.files.names import NOUNS

if TYPE_CHECKING:
    from idecode_core.folder.record import EpochLog
    from idecode_core.training.loop import ProgressHook


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
    resume: Annotated[
        bool, typer.Option(help="Go on with an unfinished run of the same data and settings.")
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=place_told,
            metavar="PATH",
            help="The new detector: a bare name puts it among the app's, a path there; named after the recipe or folder if left out.",
        ),
    ] = None,
    replace: Replace = False,
    audio: Annotated[bool, typer.Option("--audio", help="Your files are sounds.")] = False,
    labels: Annotated[
        str | None,
        typer.Option(help="Of your files: folders (subfolders are classes) or none; found out if left out."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="For your files: mahalanobis, neighbours, patches, places or rotations (pictures), classifier, statistics or both (sounds); chosen if left out."
        ),
    ] = None,
    ood: Annotated[
        list[str] | None,
        typer.Option(
            help="Files that do not belong, to test with; may be given several times. Else sets that come with the project."
        ),
    ] = None,
    learn_from_ood: Annotated[
        bool,
        typer.Option(
            "--learn-from-ood",
            help="A random half of --ood chooses the model, the other half tests; the bound is kept, and what that gained is said.",
        ),
    ] = False,
    judge: Annotated[
        str,
        typer.Option(
            metavar="NEW",
            help="With few files: make no detector, and judge the files of NEW at once; every one of yours fits and calibrates.",
        ),
    ] = "",
    epsilon: Annotated[
        float, typer.Option(help="With --judge: the most often that a file that belongs is flagged.")
    ] = 0.05,
    summary: Annotated[str, typer.Option(help="What belongs, in your own words.")] = "",
    seed: Annotated[int, typer.Option(help="Seed of the split of your files.")] = 0,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Train a model on your own files or by a recipe, calibrate it on held-out data and save it as a detector folder.

    A stopped run goes on where it was: its state is kept in runs/, in a folder named after the detector and by a hash of the
    data and settings, so that different runs never share one. The same training cannot run twice at once.

    \b
    Examples:
      python -m idecode_core train my-photos/ --out mine --ood other-photos/ --summary "our garden"
      python -m idecode_core train my-photos/ --out mine --ood known/ --learn-from-ood
      python -m idecode_core train recordings/ --audio --labels folders --out mine
      python -m idecode_core train few-photos/ --judge new-photos/ --epsilon 0.05
      python -m idecode_core train fashion-quick --epochs 1 --out checkpoints/mine
      python -m idecode_core train cifar10-rotations --device cuda --replace
      torchrun --nproc_per_node=4 -m idecode_core train paper-cifar10-projective
    """
    from idecode_core.training.finish import train_recipe
    from idecode_core.training.recipes import RECIPES, get_recipe

    if recipe in RECIPES:
        with ExitStack() as bars:

            def step(run: Path, count: int) -> "ProgressHook":
                return bars.enter_context(EpochProgress(count, run)).step

            place, made = train_recipe(
                recipe,
                out,
                data_root=data_root,
                epochs=epochs,
                resume=resume,
                replace=replace,
                device=device,
                step=step,
                report=bars.enter_context(progress_bars()),
            )
        if made is not None:
            k = made.calibration.k
            told(
                f"{place}: trained and calibrated on {k:,} held-out {NOUNS[made.scorer.modality]}s. Use it with --detector {place}",
                {"detector": str(place), "recipe": recipe, "k": k, "n_max": made.calibration.n_max},
                as_json,
                as_csv,
            )
        return
    source = Path(recipe)
    if not source.exists() and source.name == recipe and not source.suffix:
        try:
            get_recipe(recipe)
        except SettingError as error:
            raise SettingError(f"There is no folder {recipe} here, and no such recipe. {error}") from None
    if judge:
        from idecode_core.training.judge_folder import judge_folder

        with progress_bars() as report:
            judged = judge_folder(source, judge, audio=audio, epsilon=epsilon, device=device, report=report)
        if not print_rows(judged.rows(), as_json=as_json, as_csv=as_csv):
            typer.echo("\n".join(judged.sentences()))
        return
    from idecode_core.training.run_state import World
    from idecode_core.training.train_folder import plan_folder

    speaks = World.join().is_first  # of several processes only the first one
    with progress_bars(speaks) as report:
        plan = plan_folder(
            source,
            out or source.stem or "mine",
            audio=audio,
            labels=labels,
            model=model,
            ood=ood or (),
            learn_from_ood=learn_from_ood,
            summary=summary,
            seed=seed,
            epochs=epochs,
            resume=resume,
            replace=replace,
            device=device,
            report=report,
        )
        if speaks and not (as_json or as_csv):
            typer.echo("\n".join(plan.sentences()))
        elif speaks and plan.too_few:
            complain(plan.too_few)
        try:
            trained = plan.train(report)
        except KeyboardInterrupt:
            if speaks and resume:
                complain("Stopped. The same command goes on where it was.")
            raise
    if trained is None:
        return
    told("\n" + "\n".join(trained.sentences()), trained.record(), as_json, as_csv)


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
        from idecode_core.folder.record import read_log

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
