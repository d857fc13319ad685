"""`make trial`, or `python -m trial --short`: attempts to break the program, and the table of docs/reliability.md."""

import argparse
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from trial import table
from trial.table import Outcome

PARTS = (
    *("files", "folders", "kills", "disk", "training", "service", "pull", "sessions", "exports", "ray"),
    *("fuzz", "guarantees", "browser", "audit"),
)
"""In the order in which they run."""


def outcomes(part: str, short: bool, seed: int, root: Path) -> Iterator[Outcome]:
    """The outcomes of one part; its modules are imported when it is asked for."""
    if part == "files":
        from trial.files import try_files

        yield from try_files(seed, short)
    elif part == "folders":
        from trial.folders import try_folders

        yield from try_folders(seed, short, root)
    elif part == "kills":
        from trial.kills import try_kills

        yield from try_kills(seed, 3 if short else 100, root)
    elif part == "disk":
        from trial.disk import try_disk

        yield from try_disk(short, root)
    elif part == "training":
        from trial.training import try_training

        yield from try_training(short, seed, root)
    elif part == "service":
        from trial.service import try_service

        yield from try_service(short, seed, root / "service")
    elif part == "pull":
        from trial.pull import try_pull

        yield from try_pull(seed, 12 if short else 200, root / "pull")
    elif part == "sessions":
        from trial.sessions import try_sessions

        yield try_sessions(seed, 20 if short else 500, root)
    elif part == "exports":
        from trial.exports import try_exports

        yield try_exports(seed, 60 if short else 1_000)
    elif part == "ray":
        from trial.cluster import try_ray

        yield try_ray(root)
    elif part == "fuzz":
        from trial.fuzz import try_fuzz

        yield from try_fuzz(short, seed, root)
    elif part == "guarantees":
        from trial.guarantees import try_guarantees

        yield from try_guarantees(short, seed)
    elif part == "browser":
        from trial.visitors import try_browser

        yield from try_browser(short, seed)
    else:
        from trial.audit import try_audit

        yield from try_audit()


def tried(part: str, short: bool, seed: int) -> Iterator[Outcome]:
    """The outcomes of one part; one that falls over itself is an outcome too, and the other parts go on."""
    with tempfile.TemporaryDirectory(prefix="idecode-trial-") as folder:
        try:
            yield from outcomes(part, short, seed, Path(folder))
        except Exception:
            broken = Outcome(part, "the trial itself")
            broken.blame("tracebacks", traceback.format_exc()[-1500:])
            yield broken


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m trial", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few cases of each part, for a look")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--write", type=Path, help="put the rows into the table of docs/reliability.md")
    parser.add_argument(
        "--moved", action="store_true", help="only count the commits since the table was written"
    )
    chosen = parser.parse_args()
    if chosen.short and chosen.write:
        parser.error("the table is of whole parts: leave out --short or --write")
    if chosen.moved:
        table.count_commits(chosen.write or Path("docs/reliability.md"))
        return 0
    sound, begin = True, time.monotonic()
    for i, part in enumerate(chosen.parts):
        minutes = (time.monotonic() - begin) / 60
        print(f"part {i + 1} of {len(chosen.parts)}, {part}, after {minutes:.1f} minutes", flush=True)
        found, commit = [], table.head() if chosen.write else ""
        for outcome in tried(part, chosen.short, chosen.seed):
            print(outcome.row(), *outcome.problems, sep="\n    ", flush=True)
            found.append(outcome)
        sound = sound and all(outcome.sound for outcome in found)
        if chosen.write:  # after each part: a run that is stopped keeps what it has found
            command = f"python -m trial --seed {chosen.seed} --write {chosen.write}"
            table.write(chosen.write, found, PARTS, command, machine(), commit)
    minutes = (time.monotonic() - begin) / 60
    print(f"done after {minutes:.1f} minutes: {'sound' if sound else 'not sound'}")
    return 0 if sound else 1


def machine() -> str:
    """Where it ran, and how busy that machine was: a load above the number of cores makes everything slower."""
    load = f", load {os.getloadavg()[2]:.0f}" if hasattr(os, "getloadavg") else ""
    return f"{platform.system()} with {os.cpu_count()} cores{load} and Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
