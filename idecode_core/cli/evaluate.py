"""`evaluate`: how well a detector separates iD from OOD, on your own data or from stored scores."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from idecode_core.cli import inputs

if TYPE_CHECKING:
    from idecode_core.quality.evaluate import Evaluated

NARROW = 100
"""Terminals with fewer columns get one block per set: a table would break its names."""


def evaluate(
    detector: inputs.DetectorName = inputs.DEFAULT_DETECTOR,
    id_source: Annotated[
        str | None, typer.Option("--id", help="Folder of iD test files, or a dataset's name.")
    ] = None,
    ood_source: Annotated[
        list[str] | None, typer.Option("--ood", help="The same for OOD files; may be given several times.")
    ] = None,
    n: inputs.Draws = None,
    epsilon: inputs.Epsilon = 0.05,
    delta: inputs.Delta = None,
    seed: inputs.Seed = 0,
    aggregate: inputs.Aggregate = "sum",
    device: inputs.Device = None,
    model: inputs.Model = None,
    trust_program: inputs.TrustProgram = False,
    data_root: inputs.DataRoot = None,
    allow_training_files: inputs.AllowTrainingFiles = False,
    groups: Annotated[
        bool,
        typer.Option(
            "--groups", help="Also the rate of each subfolder of --id, the most often flagged first."
        ),
    ] = False,
    as_json: inputs.Json = False,
    as_csv: inputs.Csv = False,
) -> None:
    """AUROC with its 95 % interval, TNR at 90 % TPR, FPR at 95 % TPR and false detection rate.

    Without --id and --ood: from the scores stored beside the detector, as means over five independent runs.

    \b
    Examples:
      python -m idecode_core evaluate --detector cifar10-rotations --n 20
      python -m idecode_core evaluate --id fashion-sample --ood digits-sample --ood textures-sample
      python -m idecode_core evaluate --detector checkpoints/mine --id good/ --ood strange/ --json
    """
    from idecode_core.quality.evaluate import evaluate as evaluate_detector

    with inputs.progress_bars(id_source is not None) as report:
        result = evaluate_detector(
            detector,
            id_source,
            ood_source or (),
            n=n,
            epsilon=epsilon,
            delta=delta,
            seed=seed,
            aggregate=aggregate,
            device=device,
            model=model,
            trust_program=trust_program,
            data_root=data_root,
            allow_training_files=allow_training_files,
            groups=groups,
            report=report,
        )
    for sentence in result.failed:
        inputs.complain(f"{sentence} It is left out.")
    if not inputs.print_rows(result.records(), as_json=as_json, as_csv=as_csv):
        show(result)


def show(result: "Evaluated") -> None:
    """A table where it fits, else one block per set."""
    titles = ("points", "AUROC %", "95 %", "TNR % at 90", "FPR % at 95", f"% detected at {result.epsilon:g}")
    cells = {
        row.ood_set: (
            f"{row.ood_points:,}",
            f"{100 * row.auroc:.1f}",
            f"{100 * row.auroc_low:.1f} to {100 * row.auroc_high:.1f}",
            *(f"{100 * rate:.1f}" for rate in (row.tnr, row.fpr, row.detection_rate)),
        )
        for row in result.rows
    }
    console = Console(highlight=False, soft_wrap=True)
    if console.width < NARROW:
        for name, values in cells.items():
            console.print(Text(name, style="bold"))
            for title, value in zip(titles, values, strict=True):
                console.print(Text(f"  {title:<20}{value:>16}"))
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("OOD set", overflow="fold")
        for title in titles:
            table.add_column(title, justify="right", no_wrap=True)
        for name, values in cells.items():
            table.add_row(Text(name), *values)
        Console(highlight=False).print(table)
    if result.rows:
        Console(highlight=False).print(f"\n{result.sentence()}\n{result.surely()}", markup=False)
    if result.groups:
        Console(highlight=False).print(result.by_group(), markup=False)
