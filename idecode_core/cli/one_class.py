"""`one-class`: train and score detectors of one class and their rivals, for `reproduce one-class`."""

from pathlib import Path
from typing import Annotated

import typer

from idecode_core.cli.inputs import DataRoot
from idecode_core.errors import SettingError

RUNS = Path("runs/one-class")
DEFAULT = "0,1,7"


def one_class(
    methods: Annotated[
        str, typer.Option(help="idecode or rivals by name, with commas between them; a wrong one lists them.")
    ] = "idecode",
    classes: Annotated[
        str, typer.Option(help="Classes of CIFAR-10 by number, with commas between them, or all.")
    ] = DEFAULT,
    superclasses: Annotated[
        bool, typer.Option("--superclasses", help="Also the four superclasses of CIFAR-100.")
    ] = False,
    checkpoints: Annotated[
        Path, typer.Option(help="The scores go to one-class/scores/ in this folder.")
    ] = Path("checkpoints"),
    data_root: DataRoot = None,
) -> None:
    """Train on one class, score its test pictures and those of the others, and store the scores.

    What is stored already is left alone, so a stopped run goes on where it was. Allow some minutes per class and method.

    \b
    Examples:
      python -m idecode_core one-class --classes all --superclasses
      python -m idecode_core one-class --methods rotnet,csi --classes 7 --data-root data
    """
    from idecode_core.experiments.one_class import CIFAR10, CIFAR100
    from idecode_core.experiments.one_class_scores import score_all

    names = [CIFAR10[number] for number in numbers(classes, len(CIFAR10))]
    names += list(CIFAR100.values()) if superclasses else []
    score_all(names, methods.split(","), root=checkpoints, data_root=data_root, runs=RUNS, report=typer.echo)
    typer.echo("All of it is stored. Now: python -m idecode_core reproduce one-class")


def numbers(text: str, count: int) -> list[int]:
    """ "0,1,7" or "all" -> class numbers below `count`."""
    if text == "all":
        return list(range(count))
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) < count for part in parts):
        raise SettingError(
            f"Classes must be numbers from 0 to {count - 1} with commas between them, or all, got {text!r}; correct --classes."
        )
    return [int(part) for part in parts]
