"""`reproduce`: the paper's tables and figures from stored scores."""

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    names: Annotated[
        list[str], typer.Argument(help="Experiments, or all; a wrong name lists them.", show_default=False)
    ],
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the detectors and their stored scores; else the variable IDECODE_CHECKPOINTS, else the "
            "project's own."
        ),
    ] = None,
    results: Annotated[Path, typer.Option(help="The file whose sections are written.")] = Path("RESULTS.md"),
) -> None:
    """Recompute tables and figures from stored scores, and write their sections of RESULTS.md.

    \b
    Examples:
      python -m idecode_core reproduce table1
      python -m idecode_core reproduce all
    """
    from idecode_core.experiments.registry import write_results
    from idecode_core.folder.settings import checkpoint_root

    for section in write_results(names, checkpoints or checkpoint_root(), results):
        typer.echo(section.markdown())
    typer.echo(f"Written to {results}.")
