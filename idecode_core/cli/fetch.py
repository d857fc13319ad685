"""`data fetch` and `data check`: datasets on disk.

`pull`: a detector from a Hugging Face repository or any address.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from idecode_core.cli.inputs import Csv, DataRoot, Json, Replace, complain, place_told, print_rows
from idecode_core.errors import SettingError
from idecode_core.files.names import printable

app = typer.Typer(no_args_is_help=True, help="Get datasets and see which are there.")


@app.command()
def fetch(
    names: Annotated[
        list[str], typer.Argument(help="cifar10, cifar100, svhn, fashion, lsun, places365, dtd.")
    ],
    data_root: DataRoot = None,
    as_json: Json = False,
    as_csv: Csv = False,
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
    for_programs, titles = as_json or as_csv, True
    for name in names:
        for path in fetching.fetch(name, root, report=complain if for_programs else typer.echo):
            row = {"dataset": path.stem, "path": str(path)}
            if not print_rows([row], as_json=as_json, as_csv=as_csv, titles=titles):
                typer.echo(f"{path}: written")
            titles = False


@app.command()
def check(data_root: DataRoot = None, as_json: Json = False, as_csv: Csv = False) -> None:
    """List the datasets that are there, and those that are missing.

    \b
    Example:
      python -m idecode_core data check --data-root ~/datasets
    """
    from idecode_core.data import data_root as find_root
    from idecode_core.image.fetch import list_sets

    datasets = list_sets(find_root(data_root))
    rows = [{**vars(dataset), "path": dataset.path and str(dataset.path)} for dataset in datasets]
    if print_rows(rows, as_json=as_json, as_csv=as_csv):
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("dataset", "points", "where"):
        table.add_column(title, justify="right" if title == "points" else "left")
    for dataset in datasets:
        fetch_it = f"python -m idecode_core data fetch {dataset.name.rpartition('-')[0]}"
        where = "bundled" if dataset.bundled else fetch_it if dataset.path is None else str(dataset.path)
        table.add_row(dataset.name, dataset.state if dataset.points is None else f"{dataset.points:,}", where)
    Console(highlight=False, soft_wrap=True).print(table)


def pull(
    detector: Annotated[
        str, typer.Argument(help="A detector's name, or the address of a zip.", show_default=False)
    ] = "",
    source: Annotated[
        str,
        typer.Option(
            envvar="IDECODE_SOURCE",
            help="owner/repository at Hugging Face, or the address of the folder that the detector lies in.",
            show_default=False,
        ),
    ] = "",
    sha256: Annotated[
        str,
        typer.Option(
            help="The sha256 of config.json, or of the zip: vouches for all the rest.", show_default=False
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            parser=place_told,
            metavar="PATH",
            help="The new detector: a bare name puts it among the others, a path there; among the others if left out.",
            show_default=False,
        ),
    ] = None,
    replace: Replace = False,
    show_list: Annotated[
        bool, typer.Option("--list", help="Show what the registry knows, and stop.")
    ] = False,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Fetch a detector and check it. Needs a network.

    Its files are tied to each other by hashes, which are always checked; --sha256 also ties them to what you were told.

    \b
    Examples:
      python -m idecode_core pull cifar10-merged --source owner/repository
      python -m idecode_core pull cifar10-merged --source https://example.org/detectors
      python -m idecode_core pull https://example.org/mine.zip --sha256 9f86d08...
      python -m idecode_core pull --list
    """
    from idecode_core.folder import pull as pulling

    if show_list:
        known = pulling.read_registry()
        rows = [{"detector": name, **entry} for name, entry in known.items()]
        for_programs = print_rows(rows, as_json=as_json, as_csv=as_csv)
        for name, entry in () if for_programs else known.items():
            vouched = f"  sha256 {entry['sha256'][:12]}" if entry["sha256"] else ""
            typer.echo(printable(f"{name}  {entry['source']}{vouched}"))
        if not known:
            complain(
                f"The registry {pulling.registry_path()} knows no detector; docs/install.md says how to write one."
            )
        return
    if not detector:
        raise SettingError("Which detector? Expected a name, the address of a zip, or --list.")
    folder = pulling.pull(detector, source, sha256=sha256, out=out, replace=replace, report=complain)
    name = folder.name if out is None else str(folder)
    if not print_rows([{"detector": name, "folder": str(folder)}], as_json=as_json, as_csv=as_csv):
        typer.echo(f"{folder}: fetched and checked. Use it with --detector {name}")
