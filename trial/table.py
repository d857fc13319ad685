"""What the parts of the trial found, and the table of docs/reliability.md."""

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from idecode_core.errors import IdecodeError

BEGIN, END = "<!-- trial: begin -->", "<!-- trial: end -->"


@dataclass
class Outcome:
    """The cases of one kind, and what went wrong with them; all counts but `cases` should be 0."""

    part: str
    what: str
    cases: int = 0
    tracebacks: int = 0
    hangs: int = 0
    wrong: int = 0  # lost detectors, wrong answers, remote requests: whatever the part is about
    most_megabytes: float | None = None  # above idle; of a soak, how much the server grew
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    """The first few, for whoever repairs them."""

    def blame(self, kind: str, words: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.problems) < 20:
            self.problems.append(f"{kind}: {words}")

    def weigh(self, megabytes: float) -> None:
        self.most_megabytes = max(self.most_megabytes or 0.0, megabytes)

    def is_refused(self, what: str, attempt: Callable[[], object], *, must_fail: bool = False) -> bool:
        """One more case. Whether it was refused, which takes one sentence; else it went well."""
        self.cases += 1
        try:
            attempt()
        except IdecodeError as error:
            if "\n" in str(error):
                self.blame("wrong", f"{what}: several lines")
            return True
        except Exception as error:
            self.blame("tracebacks", f"{what}: {type(error).__name__}: {error}"[:300])
            return True
        if must_fail:
            self.blame("wrong", f"{what} was accepted")
        return False

    @contextmanager
    def timed(self) -> Iterator[None]:
        begin = time.monotonic()
        yield
        self.seconds += time.monotonic() - begin

    @property
    def sound(self) -> bool:
        return not (self.tracebacks or self.hangs or self.wrong)

    def row(self, commit: str = "") -> str:
        memory = "" if self.most_megabytes is None else f"{self.most_megabytes:,.0f}"
        cells = (self.part, self.what, f"{self.cases:,}", self.tracebacks, self.hangs, self.wrong, memory)
        return "| " + " | ".join(str(cell) for cell in (*cells, f"{self.seconds:,.0f}", commit)) + " |"


PROGRAM = ("idecode_core", "lessons", "ui", "pages", "app.py")
MOVED = re.compile(r"The oldest is of `\w+`; the program has moved by \d+ commits? since")
ROW = re.compile(r"^\| (\w+) \|.*\| ([\d,]+) \| ([0-9a-f]{7,40}) \|$", re.MULTILINE)
"""Its part, seconds and commit."""


def git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()


def oldest(text: str) -> str:
    """Which row's commit is the oldest, and by how many commits the program has moved since."""
    commits = {row[3] for row in ROW.finditer(text)}
    moved = {commit: int(git("rev-list", "--count", f"{commit}..HEAD", "--", *PROGRAM)) for commit in commits}
    commit = max(moved, key=moved.__getitem__)
    plural = "s" * (moved[commit] != 1)
    return f"The oldest is of `{commit}`; the program has moved by {moved[commit]} commit{plural} since"


def count_commits(path: Path) -> None:
    """Say in the document by how many commits the program has moved since the oldest row of its table."""
    document = path.read_text(encoding="utf-8")
    path.write_text(MOVED.sub(oldest(document), document), encoding="utf-8")


def head() -> str:
    return git("rev-parse", "--short=7", "HEAD")


def write(
    path: Path, outcomes: Sequence[Outcome], parts: Sequence[str], command: str, machine: str, commit: str
) -> None:
    """Put rows into the table of a document: in the place of the rows of their parts, the others stay."""
    document = path.read_text(encoding="utf-8")
    place = re.search(f"{re.escape(BEGIN)}.*{re.escape(END)}", document, re.DOTALL)
    if not place:
        raise ValueError(f"{path}: expected the lines {BEGIN} and {END}, where the table goes.")
    tried = {outcome.part for outcome in outcomes}
    rows = [row[0] for row in ROW.finditer(place[0]) if row[1] not in tried]
    rows += [outcome.row(commit) for outcome in outcomes]
    table = "\n".join(sorted(rows, key=lambda row: parts.index(row.split()[1])))
    minutes = sum(int(row[2].replace(",", "")) for row in ROW.finditer(table)) / 60
    lines = (
        BEGIN,
        f"Written by `{command}`, at once or part by part (`--parts`); the last part on {machine}; {minutes:.0f} minutes "
        f"together. Each row names the commit that it was run at. {oldest(table)} (`python -m trial --moved` counts).",
        "",
        "| part | what | cases | tracebacks | hangs | lost or wrong | most MB above idle | seconds | commit |",
        "|---|---|---:|---:|---:|---:|---:|---:|---|",
        table,
        "",
        END,
    )
    path.write_text(document.replace(place[0], "\n".join(lines)), encoding="utf-8")
