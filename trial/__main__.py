"""`make trial`, or `python -m trial --short`: attempts to break the program, and the table of docs/reliability.md."""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from trial import table
from trial.table import Outcome

ROOT = Path(__file__).parent.parent
PARTS = ("files", "folders", "kills", "disk", "fuzz", "browser", "audit")
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
    elif part == "fuzz":
        yield fuzz(100 if short else 5000)
    elif part == "browser":
        yield from in_browser(short, seed)
    else:
        yield from audit()


def fuzz(examples: int) -> Outcome:
    """The invariants of tests/test_fuzz.py with many more examples than in `make test`."""
    begin = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "tests/test_fuzz.py",
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "IDECODE_FUZZ": str(examples)},
        capture_output=True,
        text=True,
        check=False,
    )
    outcome = Outcome("fuzzing", f"readers and conformal functions, {examples:,} examples per invariant")
    outcome.cases = done.stdout.count(".") and examples
    outcome.seconds = time.monotonic() - begin
    if done.returncode:
        outcome.blame("wrong", done.stdout[-1500:])
    return outcome


def in_browser(short: bool, seed: int) -> Iterator[Outcome]:
    from tests.browser import chromium, served
    from trial.visitors import server_of, try_soak, try_visitors

    with served(ROOT / "app.py") as address, chromium() as browser:
        yield from try_visitors(browser, address, 3 if short else 20, seed)
        yield from try_soak(browser, address, 20 if short else 600, seed, server_of(address))


def audit() -> Iterator[Outcome]:
    """Known holes in what is installed, where pip-audit and its database are within reach."""
    outcome, begin = Outcome("supply chain", "packages with a known vulnerability"), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", "--local", "--progress-spinner", "off", "--timeout", "15"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    outcome.seconds = time.monotonic() - begin
    if "No module named" in done.stderr or "ServiceError" in done.stderr or "ConnectionError" in done.stderr:
        outcome.what += " (not checked: pip-audit or its database is not within reach)"
    else:
        found = [line for line in done.stdout.splitlines()[2:] if line.strip()]
        outcome.cases = 1
        for line in found:
            outcome.blame("wrong", line)
    yield outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m trial", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few cases of each part, for a look")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--write", type=Path, help="the document whose table is written, docs/reliability.md")
    chosen = parser.parse_args()
    found: list[Outcome] = []
    for part in chosen.parts:
        with tempfile.TemporaryDirectory(prefix="idecode-trial-") as folder:
            for outcome in outcomes(part, chosen.short, chosen.seed, Path(folder)):
                print(outcome.row(), *outcome.problems, sep="\n    ", flush=True)
                found.append(outcome)
    if chosen.write:
        options = [
            *(["--short"] if chosen.short else []),
            *(["--parts", *chosen.parts] if chosen.parts != list(PARTS) else []),
        ]
        command = " ".join(["python -m trial", *options, f"--seed {chosen.seed}"])
        table.write(chosen.write, table.markdown(found, command, machine()))
    return 0 if all(outcome.sound for outcome in found) else 1


def machine() -> str:
    return f"{platform.system()} with {os.cpu_count()} cores and Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
