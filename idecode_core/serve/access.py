"""Who may ask, how often, and how long a connection may keep silent."""

import hmac
import os
import secrets
import time
from asyncio import Transport
from collections import Counter
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from idecode_core.errors import SettingError
from idecode_core.files.read import read_at_most, reason

HEADER_SECONDS = 10
ANSWER_SECONDS = 10
"""Within which a client must go on reading its answer."""
IDLE_SECONDS = 5
SHUTDOWN_SECONDS = 5
MINUTE = 60.0
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Access:
    """A token where one is set, and a limit of requests per client and minute; /health stays open for containers."""

    def __init__(self, app: ASGIApp, token: str = "", per_minute: int | None = None) -> None:
        self.app, self.token, self.per_minute = app, token, per_minute
        self.asked: Counter[str] = Counter()
        self.since = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != "/health" and (refusal := self.refusal(scope)):
            status, sentence, headers = refusal
            failure = {"error": sentence, "request_id": scope.get("request_id", "")}
            await JSONResponse(failure, status, headers)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def refusal(self, scope: Scope) -> tuple[int, str, dict[str, str]] | None:
        """Status, sentence and headers; None for who may go on."""
        if self.per_minute is not None:
            if (passed := time.monotonic() - self.since) > MINUTE:
                self.asked.clear()
                self.since, passed = time.monotonic(), 0.0
            client = scope["client"][0] if scope.get("client") else ""
            self.asked[client] += 1
            if self.asked[client] > self.per_minute:
                wait = str(int(MINUTE - passed) + 1)
                return 429, f"More than {self.per_minute} requests in a minute; wait.", {"Retry-After": wait}
        given = dict(scope["headers"]).get(b"authorization", b"")
        if self.token and not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
            return (
                401,
                "Expected the header Authorization: Bearer with the token.",
                {"WWW-Authenticate": "Bearer"},
            )
        return None


class PatientProtocol(H11Protocol):
    """uvicorn's, with a time within which the head of each request must have come, and its answer must be taken."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.pauses = 0
        self.expect_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.expect_request()

    def expect_request(self) -> None:
        self.loop.call_later(HEADER_SECONDS, self.close_unless_asked, self.cycle)

    def close_unless_asked(self, last: Any) -> None:
        if self.cycle is last and not self.transport.is_closing():
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.pauses += 1
        self.loop.call_later(ANSWER_SECONDS, self.abort_unless_read, self.pauses)

    def abort_unless_read(self, pause: int) -> None:
        if self.flow.write_paused and self.pauses == pause:
            self.transport.abort()  # to close it would wait until all is read


def server_options() -> dict[str, Any]:
    """For uvicorn: no client that keeps silent holds a connection, or the end of the service, for long."""
    return {
        "http": PatientProtocol,
        "ws": "none",
        "timeout_keep_alive": IDLE_SECONDS,
        "timeout_graceful_shutdown": SHUTDOWN_SECONDS,
        "log_level": "error",
        "access_log": False,
    }


def opened(host: str, port: int, token: str) -> str:
    """What a service that others can reach opens to them; "" for this machine only."""
    if host in LOOPBACK:
        return ""
    who = (
        "whoever has the token" if token else "everyone, because no token is set (--token, or IDECODE_TOKEN)"
    )
    return (
        f"{host}, port {port}, can be reached from other machines and answers {who}. There is no encryption: put a proxy with TLS "
        "before it."
    )


def secret_seed(path: Path) -> int:
    """The seed in a file that only its owner can read; a new one where there is none.

    Draws follow seed and content: who knows the seed can change a file by a pixel until its draws are lucky. The guarantee is
    the same, because calibration points keep draws of their own and a test point's are independent of them under any seed.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if os.name == "posix" and path.stat().st_mode & 0o077:
                raise SettingError(
                    f"{path} holds the secret seed and others can read it. Run `chmod 600` on it, or remove it for a new seed."
                ) from None
            return int(read_at_most(path, 100))
        with os.fdopen(handle, "w") as file:
            file.write(f"{(seed := secrets.randbits(120))}\n")
        return seed
    except (OSError, ValueError) as error:
        raise SettingError(
            f"{path} cannot keep the secret seed ({reason(error)}). Name another folder with --state, or a public --seed."
        ) from None
