"""The app, opened from a notebook on what is being looked at there; and a notebook, opened from the app.

    from idecode_core import studio
    studio.open(detection)      # or a session; shows the app, or its link
    ...                         # tag, note, move epsilon there
    session = studio.session()  # what was opened last, with all that was changed in the app
    studio.close()

One app for all notebooks of a user: where it runs stands in a small file beside the sessions. It listens on this machine only, and
shows sessions to who has the token of the link.
"""

import json
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from idecode_core.data import CHECKOUT
from idecode_core.errors import IdecodeError
from idecode_core.session import Session
from idecode_core.session.store import sessions_root

if TYPE_CHECKING:
    from idecode_core.detector import Detection

PACKAGE = Path(__file__).resolve().parent
PLACES = (PACKAGE / "studio" / "app.py", CHECKOUT / "app.py")
"""In the wheel (setup.py puts it there), and beside a checkout."""
TOKEN_VARIABLE = "IDECODE_STUDIO_TOKEN"
MODEL_VARIABLE, TRUST_VARIABLE = "IDECODE_MODEL", "IDECODE_TRUST_PROGRAM"
"""What `idecode app --model module:function --trust-program` hands to the app."""
PATIENCE = 60.0  # seconds until a new app answers
TRIES = 3  # with another port each: somebody may take a free one before the app does
JUPYTER_IDLE = 4 * 3600  # seconds until a JupyterLab that nobody uses ends
REMOTE = ("SSH_CONNECTION", "JUPYTERHUB_USER", "COLAB_RELEASE_TAG", "CODESPACES", "KUBERNETES_SERVICE_HOST")
"""Variables of kernels that run on another machine than the browser."""


@dataclass(frozen=True)
class Running:
    """An app of this user."""

    pid: int
    port: int
    token: str

    def answers(self) -> bool:
        try:
            address = f"http://localhost:{self.port}/_stcore/health"
            with urllib.request.urlopen(address, timeout=2) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError, ValueError):
            return False

    def is_alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        with suppress(OSError):  # where it can be seen whether another program has this number now
            return b"streamlit" in Path(f"/proc/{self.pid}/cmdline").read_bytes()
        return True


@dataclass(frozen=True)
class View:
    """The app on one session: shown inside of a notebook, a link elsewhere."""

    link: str
    sentence: str = ""
    height: int = 800

    def __repr__(self) -> str:
        return f"{self.sentence} {self.link}".strip()

    def _repr_html_(self) -> str:
        link = escape(self.link)
        words = f'<p>{escape(self.sentence)} <a href="{link}" target="_blank">{link}</a></p>'
        style = f"width:100%;height:{self.height}px;border:1px solid #8886"
        framed = f'<iframe src="{link}&amp;embed=true" style="{style}"></iframe>'  # its sidebar is closed
        return words if self.sentence else words + framed


Server = TypeVar("Server")
_last: list[Session] = []


def open(
    what: "Detection | Session | None" = None, *, name: str = "", page: str = "inspect", **state: str
) -> View:
    """The app on a detection or a session, or on a page in the `state` of a link; it is started where none runs."""
    query = dict(state)
    if what is not None:
        session = what if isinstance(what, Session) else Session.from_detection(what, name=name)
        session.save()
        _last[:] = [session]
        query["session"] = session.name
    app = running() or start()
    words = urllib.parse.urlencode({**query, "token": app.token})
    link = f"http://localhost:{app.port}/{page}?{words}"
    if not any(os.environ.get(variable) for variable in REMOTE):
        return View(link)
    return View(
        link,
        f"The kernel runs on another machine: forward its port {app.port} to yours (ssh -L {app.port}:localhost:{app.port} and "
        "the machine's name), then open this link.",
    )


def session() -> Session:
    """The session that was opened last, with what was changed in the app."""
    if not _last:
        raise IdecodeError("No session was opened in this notebook yet: studio.open(detection) opens one.")
    return _last[0].reload()


def close() -> None:
    """End the app of this user, if one runs. Sessions stay."""
    app = running()
    if app is not None:
        with suppress(OSError):
            os.kill(app.pid, signal.SIGTERM)
        for child in _children:
            if child.pid == app.pid:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(10)
    state_file().unlink(missing_ok=True)


_children: list["subprocess.Popen[bytes]"] = []


def state_file() -> Path:
    return sessions_root().parent / "studio.json"


def running() -> Running | None:
    """The app that the state file speaks of, if it still answers."""
    try:
        value = json.loads(state_file().read_text(encoding="utf-8"))
        app = Running(int(value["pid"]), int(value["port"]), str(value["token"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return app if app.is_alive() and app.answers() else None


def start() -> Running:
    """A new app on a free port; IdecodeError with one sentence where it cannot be."""
    token, place = secrets.token_urlsafe(16), script().parent

    def answers(port: int, child: "subprocess.Popen[bytes]") -> Running | None:
        app = Running(child.pid, port, token)
        return app if app.answers() else None

    app = _launched(
        lambda port: command(port, "localhost", headless=True),
        answers,
        place,
        IDECODE_SESSIONS=str(sessions_root().absolute()),
        PYTHONPATH=os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]),
        **{TOKEN_VARIABLE: token},
    )
    if app is None:
        raise IdecodeError(
            "The app did not start. Run `idecode app` in a terminal to see why; the session is saved and nothing is lost."
        )
    remember(app)
    return app


def _launched(
    words: Callable[[int], list[str]],
    ready: Callable[[int, "subprocess.Popen[bytes]"], Server | None],
    place: Path,
    **variables: str,
) -> Server | None:
    """What `ready` finds of a new server on a free port, which outlives an interrupted cell; None where it does not come up."""
    for port in free_ports():
        child = subprocess.Popen(
            words(port),
            cwd=place,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and child.poll() is None:
            if (server := ready(port, child)) is not None:
                _children.append(child)
                return server
            time.sleep(0.1)
        if child.poll() is None:
            child.terminate()
            break
    return None


def open_notebook(path: Path) -> str:
    """The link to a notebook of this machine in JupyterLab: in one that runs above its folder, else in a new one."""
    if find_spec("jupyterlab") is None:
        raise IdecodeError(
            f'The notebook is written to {path}. To open it here, JupyterLab is needed: pip install "idecode-studio[notebook]"'
        )
    server = next(iter(_servers_above(path)), None) or _start_jupyter(path.parent)
    inside = urllib.parse.quote(path.resolve().relative_to(Path(server["root_dir"]).resolve()).as_posix())
    token = f"?token={server['token']}" if server["token"] else ""
    return f"{server['url'].rstrip('/')}/lab/tree/{inside}{token}"


def _servers_above(path: Path) -> list[dict[str, Any]]:
    from jupyter_server.serverapp import list_running_servers

    here = path.resolve()
    return [
        server for server in list_running_servers() if here.is_relative_to(Path(server["root_dir"]).resolve())
    ]


def _start_jupyter(folder: Path) -> dict[str, Any]:
    """It ends by itself when nobody has used it for hours; it may hold work, so nothing else ends it."""
    options = {
        "ServerApp.root_dir": str(folder.resolve()),
        "ServerApp.ip": "localhost",
        "ServerApp.port_retries": "0",
        "ServerApp.shutdown_no_activity_timeout": JUPYTER_IDLE,
        "MappingKernelManager.cull_idle_timeout": JUPYTER_IDLE,
    }
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    words = [f"--{name}={value}" for name, value in options.items()]
    jupyter = _launched(
        lambda port: [
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            *as_root,
            *words,
            f"--ServerApp.port={port}",
        ],
        lambda port, _: next((server for server in _servers_above(folder) if server["port"] == port), None),
        folder,
        JUPYTER_TOKEN=secrets.token_urlsafe(16),
    )
    if jupyter is None:
        raise IdecodeError(
            f"JupyterLab did not start. The notebook is written; open it by: jupyter lab {shlex.quote(str(folder))}"
        )
    return jupyter


def free_ports() -> Iterator[int]:
    for _ in range(TRIES):
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            port = int(probe.getsockname()[1])
        yield port


def remember(app: Running) -> None:
    """Write the state file, for this user's eyes only."""
    path = state_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{app.pid}.part")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(vars(app), file)
    temporary.replace(path)


def user_network(scorer: Mapping[str, Any]) -> dict[str, Any]:
    """More for `load_detector`, by a detector's settings of its scorer: the network that the user has named for this app."""
    if scorer.get("kind") != "own":
        return {}
    trusted = os.environ.get(TRUST_VARIABLE) == "1"
    return {"model": os.environ.get(MODEL_VARIABLE) or None, "trust_program": trusted}


def script() -> Path:
    """app.py; IdecodeError where it, or what it needs, is not installed."""
    path = next((place for place in PLACES if place.is_file()), None)
    if path is None:
        raise IdecodeError(
            "app.py is not part of this installation. Install the package again, or use a checkout."
        )
    if find_spec("streamlit") is None:
        raise IdecodeError('The app needs more packages: pip install "idecode-studio[app]"')
    return path


def command(port: int, address: str, *, headless: bool) -> list[str]:
    """What starts the app."""
    settings = {
        "server.port": port,
        "server.address": address,
        "server.headless": str(headless).lower(),
        "server.showEmailPrompt": "false",
    }
    options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "streamlit", "run", str(script()), *options]
