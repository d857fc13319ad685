"""`pull`: a detector from a Hugging Face repository or any address."""

import os
from pathlib import Path
from typing import Annotated

import typer

from idecode_core.cli.inputs import complain
from idecode_core.errors import SettingError


def pull(
    detector: Annotated[
        str, typer.Argument(help="A detector's name, or the address of a zip.", show_default=False)
    ],
    source: Annotated[
        str,
        typer.Option(
            help="owner/repository at Hugging Face, or the address of the folder that the detector lies in; else the variable "
            "IDECODE_SOURCE.",
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
        typer.Option(help="The new detector folder; among the others if left out.", show_default=False),
    ] = None,
) -> None:
    """Fetch a detector and check it. Needs a network.

    Its files are tied to each other by hashes, which are always checked; --sha256 also ties them to what you were told.

    \b
    Examples:
      python -m idecode_core pull cifar10-merged --source owner/repository
      python -m idecode_core pull cifar10-merged --source https://example.org/detectors
      python -m idecode_core pull https://example.org/mine.zip --sha256 9f86d08...
    """
    from idecode_core.folder import pull as pulling

    if "://" in detector:
        folder = pulling.pull_zip(detector, sha256=sha256, out=out, report=complain)
    else:
        source = source or os.environ.get("IDECODE_SOURCE", "")
        if not source:
            raise SettingError(
                f"Where is {detector} to come from? Expected --source owner/repository, --source https://..., or the variable "
                "IDECODE_SOURCE."
            )
        folder = pulling.pull(detector, source, sha256=sha256, out=out, report=complain)
    typer.echo(
        f"{folder}: fetched and checked. Use it with --detector {folder.name if out is None else folder}"
    )
