"""What a page shows, and what it judges samples with, as plain values: the one form that CSV, JSON and HTML are written from."""

import datetime
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from idecode_core.files.names import printable

if TYPE_CHECKING:
    from idecode_core.conformal.judge import Verdict
    from idecode_core.report.notebook import Notebook

Value = str | int | float | bool | None | tuple[float, ...]


@dataclass(frozen=True)
class Picture:
    """A small picture of a row, as a PNG or JPEG file; only the HTML report shows it."""

    data: bytes
    description: str = ""


Row = Mapping[str, Value | Picture]


@dataclass(frozen=True, eq=False)
class Figure:
    """A Plotly figure as it is on the screen, with the caption that says what to look for."""

    plotly: Any  # plotly.graph_objects.Figure
    caption: str = ""


def now() -> str:
    """The date and the time, as in 2026-11-18 14:30."""
    return datetime.datetime.now().isoformat(" ", "minutes")


@dataclass(frozen=True, eq=False)
class Report:
    """A page's result: sentences for people, settings that recompute it, one table, pictures and figures."""

    title: str
    sentences: tuple[str, ...]
    settings: Mapping[str, Value]
    rows: tuple[Row, ...] = ()
    """The table; every row has the same columns."""
    figures: tuple[Figure, ...] = field(default=())
    pictures: tuple[Picture, ...] = ()
    """What the network saw, such as the variants of an input; each with what was done and its score."""
    commands: tuple[str, ...] = ()
    """What to type to have these numbers again."""
    made: str = field(default_factory=now)


class Export(NamedTuple):
    """A page to keep: its report, and the notebook that computes it again."""

    report: Report
    notebook: "Notebook"


@dataclass(frozen=True, eq=False)
class Judged:
    """A detector and the settings of a page."""

    detector: str
    """The name of its folder below the checkpoint root."""
    scorer_sha256: str
    calibration_sha256: str
    n: int
    epsilon: float
    aggregate: str
    smoothed: bool
    seed: int

    def settings(self, k: int, **more: Value) -> dict[str, Value]:
        given = self.given()
        kind = "smoothed" if given.pop("smoothed") else "conservative"
        return {**given, "k": k, "p_value_kind": kind, **more}

    def given(self) -> dict[str, Value]:
        """All of these fields, for a notebook."""
        return {entry.name: getattr(self, entry.name) for entry in fields(Judged)}


def verdict_row(verdict: "Verdict", score_vector: tuple[float, ...], content_hash: str) -> Row:
    """The columns that say how a sample was judged."""
    return {
        "verdict": verdict.answer,
        "p_value": verdict.p_value,
        "rank": verdict.rank,
        "k": verdict.k,
        "score": verdict.score,
        "score_vector": score_vector,
        "content_hash": content_hash,
    }


def command(name: str, *words: str, **options: object) -> str:
    """What is on a page, typed: an `idecode` command that a reader can paste; options that are None or empty are left out, and what comes from files is quoted.

    >>> command("detect", "my photo.jpg", **{"--n": 5, "--delta": None})
    "idecode detect 'my photo.jpg' --n 5"
    """
    given = [
        (key, f"{value:.12g}" if isinstance(value, float) else str(value))
        for key, value in options.items()
        if value is not None and value != ""
    ]
    files = [f"./{word}" if word.startswith("-") else word for word in words]  # never an option
    parts = [*files, *(part for pair in given for part in pair)]
    return " ".join(["idecode", name, *(shlex.quote(printable(part)) for part in parts)])
