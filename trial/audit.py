"""Part 13: known holes in what is installed, where pip-audit and its database are within reach."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from trial.table import Outcome


def try_audit() -> Iterator[Outcome]:
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", "--local", "--progress-spinner", "off", "--timeout", "15", "--format", "json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    outcome = audited(done.stdout)
    outcome.seconds = time.monotonic() - begin
    yield outcome


def audited(report: str) -> Outcome:
    """What pip-audit found, from its JSON; a package that its database does not know was not checked."""
    outcome = Outcome("audit", "packages with a known vulnerability")
    try:
        packages: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        packages = []
    checked = [package for package in packages if "skip_reason" not in package]
    if not checked:
        outcome.what += " (not checked: pip-audit or its database is not within reach)"
    outcome.cases = len(checked)
    for package in checked:
        for hole in package["vulns"]:
            outcome.blame("wrong", f"{package['name']} {package['version']}: {hole['id']}")
    return outcome
