"""The command line: `python -m idecode_core`, or `idecode` once installed.

A new command is a function in idecode_core/cli/ that is registered here. Importing its module must be quick:
whatever needs torch is imported inside of the function.
"""

import sys
import traceback
from collections.abc import Sequence

import typer

from idecode_core.cli import data
from idecode_core.cli.calibrate import calibrate
from idecode_core.cli.certify import certify
from idecode_core.cli.detect import detect
from idecode_core.cli.evaluate import evaluate
from idecode_core.cli.inputs import complain
from idecode_core.cli.merge import merge
from idecode_core.cli.reproduce import reproduce
from idecode_core.cli.score_sets import score_sets
from idecode_core.cli.train import train
from idecode_core.errors import IdecodeError

ERROR = 2

app = typer.Typer(
    name="idecode",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="iDECODe: out-of-distribution detection with a guarantee.",
    epilog="Start with: python -m idecode_core detect photo.jpg",
)
app.command()(detect)
app.command()(calibrate)
app.command()(certify)
app.command()(evaluate)
app.command()(train)
app.command()(merge)
app.command()(score_sets)
app.command()(reproduce)
app.add_typer(data.app, name="data")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; every error ends with status 2, because 1 means that something was flagged."""
    try:
        app(args=arguments)
    except IdecodeError as error:
        complain(str(error))
        sys.exit(ERROR)
    except Exception:
        traceback.print_exc()
        complain("stopped by an error of its own; please report the lines above.")
        sys.exit(ERROR)
