"""What a page shows, as plain values: the one form that CSV, JSON and HTML are written from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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


@dataclass(frozen=True, eq=False)
class Report:
    """A page's result: sentences for people, settings that recompute it, one table, and figures."""

    title: str
    sentences: tuple[str, ...]
    settings: Mapping[str, Value]
    rows: tuple[Row, ...] = ()
    """The table; every row has the same columns."""
    figures: tuple[Figure, ...] = field(default=())


class Export(NamedTuple):
    """A page to keep: its report, and the notebook that computes it again."""

    report: Report
    notebook: str
