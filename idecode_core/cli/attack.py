"""`attack`: change pictures a little so that a classifier names them wrong."""

from pathlib import Path
from typing import Annotated

import typer

from idecode_core.cli import inputs
from idecode_core.files.shown import progress_bar


def attack(
    files: Annotated[list[Path], typer.Argument(help="Pictures, or folders of them.", show_default=False)],
    out: Annotated[
        Path, typer.Option(help="A new folder for attacked.npz and attacked.csv.", show_default=False)
    ],
    victim: Annotated[
        str, typer.Option(help="A detector whose network names classes.")
    ] = "cifar10-invariance",
    name: Annotated[str, typer.Option("--attack", help="fgsm, bim, deepfool or cw.")] = "fgsm",
    strength: Annotated[float | None, typer.Option(help="The paper's if left out.")] = None,
    device: inputs.Device = None,
    as_json: inputs.Json = False,
    as_csv: inputs.Csv = False,
) -> None:
    """Attack a classifier on pictures; what it sees in each before the attack counts as right.

    Writes attacked.npz (clean and attacked pictures at the classifier's size, floats from 0 to 1) and attacked.csv.

    \b
    Examples:
      python -m idecode_core attack photos/ --attack deepfool --out attacked
    """
    from idecode_core.attacks.classic import attack_files

    with progress_bar("attacking", 100) as bar:
        made = attack_files(
            files,
            out,
            victim=victim,
            name=name,
            strength=strength,
            device=device,
            progress=lambda share: bar(round(100 * share)),
        )
    if not inputs.print_rows(made.records(), as_json=as_json, as_csv=as_csv):
        typer.echo(f"{made.attacked.summary()} Written to {made.folder}.")
