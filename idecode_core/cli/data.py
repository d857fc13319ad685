"""`data fetch` and `data check`: datasets on disk."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from idecode_core.cli.inputs import DataRoot

app = typer.Typer(no_args_is_help=True, help="Get datasets and see which are there.")


@app.command()
def fetch(
    names: Annotated[
        list[str], typer.Argument(help="cifar10, cifar100, svhn, fashion, lsun, places365, dtd.")
    ],
    data_root: DataRoot = None,
) -> None:
    """Download datasets and store them as <data root>/<name>-<split>.npz. Needs internet.

    \b
    Examples:
      python -m idecode_core data fetch cifar10 svhn
      python -m idecode_core data fetch fashion --data-root ~/datasets
    """
    from idecode_core.data import data_root as find_root
    from idecode_core.image import fetch as fetching

    root = find_root(data_root)
    fetching.check_names(names)
    for name in names:
        for path in fetching.fetch(name, root, report=typer.echo):
            typer.echo(f"{path}: written")


@app.command()
def check(data_root: DataRoot = None) -> None:
    """List the datasets that are there, and those that are missing.

    \b
    Example:
      python -m idecode_core data check --data-root ~/datasets
    """
    from idecode_core.data import EMBEDDED
    from idecode_core.data import data_root as find_root
    from idecode_core.image.fetch import SOURCES, count

    root = find_root(data_root)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("dataset", "points", "where"):
        table.add_column(title, justify="right" if title == "points" else "left")
    found = {path.stem: path for folder in (EMBEDDED, root) for path in sorted(folder.glob("*.npz"))}
    for name, path in sorted(found.items()):
        points = count(path)
        where = "bundled" if path.parent == EMBEDDED else str(path)
        table.add_row(name, "damaged" if points is None else f"{points:,}", where)
    for source in SOURCES.values():
        for split in source.splits:
            if (name := f"{source.name}-{split}") not in found:
                table.add_row(name, "missing", f"python -m idecode_core data fetch {source.name}")
    Console(highlight=False, soft_wrap=True).print(table)
