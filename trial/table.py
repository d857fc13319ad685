"""What the parts of the trial found, and the table of docs/reliability.md."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

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

    @property
    def sound(self) -> bool:
        return not (self.tracebacks or self.hangs or self.wrong)

    def row(self) -> str:
        memory = "" if self.most_megabytes is None else f"{self.most_megabytes:,.0f}"
        cells = (self.part, self.what, f"{self.cases:,}", self.tracebacks, self.hangs, self.wrong, memory)
        return "| " + " | ".join(str(cell) for cell in (*cells, f"{self.seconds:,.0f}")) + " |"


def markdown(outcomes: Sequence[Outcome], command: str, machine: str) -> str:
    lines = [
        BEGIN,
        f"Written by `{command}` on {machine}.",
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
