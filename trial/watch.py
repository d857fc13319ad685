"""A reader in a process of its own: how each input ended, how long it took, and how much memory at the most."""

import contextlib
import multiprocessing
import os
import resource
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

PATIENCE = 30.0  # seconds for a single input, on a slow and busy machine
READ, REFUSED, TRACEBACK, HANG, DIED = "read", "refused", "traceback", "hang", "died"


@dataclass(frozen=True)
class Ended:
    """How one input ended; `words` is the sentence of a refusal or the last line of a traceback."""

    how: str
    words: str = ""
    megabytes: float = 0.0  # at the peak, above what the process had before


class Watched:
    """Calls `handle(item)` in another process; one that hangs or dies is replaced, and the next item goes on."""

    def __init__(self, handle: Callable[[Any], str], patience: float = PATIENCE) -> None:
        self.handle, self.patience = handle, patience
        self.context = multiprocessing.get_context("spawn")
        self.process: Any = None
        self.pipe: Any = None

    def __enter__(self) -> "Watched":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        self.pipe, other = self.context.Pipe()
        self.process = self.context.Process(target=serve, args=(other, self.handle), daemon=True)
        self.process.start()
        other.close()
        self.pipe.recv()  # it is ready: importing does not count

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None

    def __call__(self, item: Any) -> Ended:
        if self.process is None:
            self.start()
        try:
            self.pipe.send(item)
            if not self.pipe.poll(self.patience):
                self.stop()
                return Ended(HANG, f"no answer within {self.patience:.0f} s")
            return Ended(*self.pipe.recv())
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            self.stop()
            return Ended(DIED, f"the process ended with {code}")


def serve(pipe: Connection, handle: Callable[[Any], str]) -> None:
    from idecode_core.errors import IdecodeError

    handle(None)  # whatever has to be imported
    printed = tempfile.TemporaryFile()  # noqa: SIM115  for as long as the process lives
    os.dup2(printed.fileno(), 2)
    pipe.send("ready")
    while True:
        try:
            item = pipe.recv()
        except EOFError:
            return
        before = reset_peak()
        try:
            how, words = READ, handle(item)
        except IdecodeError as error:
            how, words = REFUSED, str(error)
        except BaseException:
            how, words = TRACEBACK, traceback.format_exc().strip().splitlines()[-1]
        del item
        if b"Traceback (most recent call last)" in new_words(printed) and how != TRACEBACK:
            how, words = TRACEBACK, "printed by a library"
        pipe.send((how, words, peak() - before))


def new_words(printed: IO[bytes]) -> bytes:
    """What went to stderr since the last time."""
    printed.seek(0)
    words = printed.read()
    printed.truncate(0)
    printed.seek(0)
    return words


def reset_peak() -> float:
    """Megabytes in use now; Linux forgets its peak when asked to."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    """The most megabytes in use since the last reset, or ever where a system cannot be asked to forget."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    except (OSError, StopIteration):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (2**20 if sys.platform == "darwin" else 1024)
