"""`app`: the app in the browser, from a checkout or from an installed package."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from idecode_core.errors import IdecodeError

PACKAGE = Path(__file__).resolve().parent.parent
PLACES = (PACKAGE / "studio" / "app.py", PACKAGE.parent / "app.py")
"""In the wheel (setup.py puts it there), and beside a checkout."""


def app(
    port: Annotated[int, typer.Option(help="The port of the app.")] = 8501,
    address: Annotated[
        str, typer.Option(help="Who may connect: localhost for this machine only, 0.0.0.0 for everyone.")
    ] = "localhost",
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Start the app.

    \b
    Examples:
      idecode app
      idecode app --port 8600 --no-browser
    """
    script = next((place for place in PLACES if place.is_file()), None)
    if script is None:
        raise IdecodeError(
            "app.py is not part of this installation. Install the package again, or use a checkout."
        )
    if find_spec("streamlit") is None:
        raise IdecodeError('The app needs more packages: pip install "idecode-studio[app]"')
    settings = {
        "server.port": port,
        "server.address": address,
        "server.headless": str(not browser).lower(),
        "server.showEmailPrompt": "false",
    }
    options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    raise typer.Exit(subprocess.call([sys.executable, "-m", "streamlit", "run", str(script), *options]))
