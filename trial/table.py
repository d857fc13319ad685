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

    def row(self) -> str:
        memory = "" if self.most_megabytes is None else f"{self.most_megabytes:,.0f}"
        cells = (self.part, self.what, f"{self.cases:,}", self.tracebacks, self.hangs, self.wrong, memory)
        return "| " + " | ".join(str(cell) for cell in (*cells, f"{self.seconds:,.0f}")) + " |"


PROGRAM = ("idecode_core", "lessons", "ui", "pages", "app.py")
SINCE = re.compile(r"at commit `([0-9a-f]{7,40})`; the program has moved by (\d+) commits? since")


def since(commit: str, moved: int) -> str:
    return f"at commit `{commit}`; the program has moved by {moved} commit{'s' * (moved != 1)} since"


def git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()


def count_commits(path: Path) -> None:
    """Say in the document by how many commits the program has moved since its table was written."""
    document = path.read_text(encoding="utf-8")
    found = SINCE.search(document)
    if not found:
        raise ValueError(f"{path}: expected the commit that its table was written at.")
    moved = int(git("rev-list", "--count", f"{found[1]}..HEAD", "--", *PROGRAM))
    path.write_text(document.replace(found[0], since(found[1], moved)), encoding="utf-8")


def markdown(outcomes: Sequence[Outcome], command: str, machine: str, commit: str = "unknown") -> str:
    lines = [
        BEGIN,
        f"Written by `{command}` on {machine}, {since(commit, 0)} (`python -m trial --moved` counts).",
        "",
        "| part | what | cases | tracebacks | hangs | lost or wrong | most MB for one input | seconds |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
        *(outcome.row() for outcome in outcomes),
        "",
        END,
    ]
    return "\n".join(lines)


def write(path: Path, text: str) -> None:
    """Put the table into its place in the document."""
    document = path.read_text(encoding="utf-8")
    place = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    if not place.search(document):
        raise ValueError(f"{path}: expected the lines {BEGIN} and {END}, where the table goes.")
    path.write_text(place.sub(lambda _: text, document), encoding="utf-8")
