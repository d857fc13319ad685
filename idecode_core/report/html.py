"""A report as one HTML file that needs nothing else: styles, pictures and Plotly's script are inside it.

It follows the reader's light or dark mode, figures too.

A vector as a small inline SVG: one bar per entry, so that a table cell can show a score vector.

A report as CSV (its table, one line per row) and as JSON (all but pictures and figures), at full precision.
"""

import base64
import csv
import io
import json
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from idecode_core import __version__
from idecode_core.files.names import defused
from idecode_core.report.content import Figure, Picture, Report, Row, Value

BAR, GAP, HEIGHT = 5, 2, 24


def sparkline(values: Sequence[float]) -> str:
    """Bars from zero, scaled to the largest entry; the exact values are in the tooltip.

    >>> sparkline([1.0, 2.0]).count("<rect")
    2
    """
    top = max((abs(value) for value in values), default=0.0) or 1.0
    bars = []
    for i, value in enumerate(values):
        height = max(HEIGHT * abs(value) / top, 1.0)
        bars.append(
            f'<rect x="{i * (BAR + GAP)}" y="{HEIGHT - height:.1f}" width="{BAR}" height="{height:.1f}"/>'
        )
    width = max(len(values) * (BAR + GAP) - GAP, 1)
    tooltip = ", ".join(f"{value:.3g}" for value in values)
    return (
        f'<svg class="spark" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}" role="img" '
        f'aria-label="{tooltip}"><title>{tooltip}</title>{"".join(bars)}</svg>'
    )


ROWS_SHOWN = 200


def to_html(report: Report) -> str:
    """The whole report; Plotly's script (about 5 MB) goes in once, and only when there are figures."""
    html: str = _page().render(
        report=report,
        columns=list(report.rows[0]) if report.rows else [],
        figures=[
            (figure_html(figure, f"figure-{i}"), figure.caption) for i, figure in enumerate(report.figures)
        ],
        plotly_script=plotly_script() if report.figures else "",
        rows_shown=ROWS_SHOWN,
        version=__version__,
    )
    return html


def shown(value: Value | Picture) -> Any:
    """A cell's text or markup; numbers with the digits that a reader wants (CSV and JSON keep all of them)."""
    from markupsafe import Markup

    if isinstance(value, Picture):
        return Markup('<img src="{}" alt="{}">').format(data_uri(value.data), value.description)
    if isinstance(value, tuple):
        return Markup(sparkline(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else value


def figure_html(figure: Figure, identity: str) -> str:
    """A div and the script that draws into it; the text takes the page's colour, which light and dark mode set."""
    import plotly.io

    html: str = plotly.io.to_html(
        figure.plotly,
        include_plotlyjs=False,
        full_html=False,
        div_id=identity,
        default_height="420px",
        config={"displaylogo": False, "responsive": True},
        post_script="followTheme('{plot_id}');",
    )
    return html


@cache
def plotly_script() -> str:
    """Plotly's own script, which goes into the page once."""
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script


def data_uri(data: bytes) -> str:
    kind = "jpeg" if data.startswith(b"\xff\xd8") else "png"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


@cache
def _page() -> Any:
    from jinja2 import Environment, PackageLoader  # only an export needs it

    environment = Environment(
        loader=PackageLoader("idecode_core.report", ""), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["shown"] = shown
    return environment.get_template("page.html")


def to_csv(report: Report) -> str:
    """The table with a header; a column that holds a vector becomes one column per entry: score_1, score_2, ...

    >>> print(to_csv(Report("t", (), {}, ({"name": "a", "score": (0.5, 2.0)},))), end="")
    name,score_1,score_2
    a,0.5,2.0
    """
    rows = [flat_row(row) for row in report.rows]
    text = io.StringIO()
    columns = list(dict.fromkeys(column for row in rows for column in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({column: defused(value) for column, value in row.items()} for row in rows)
    return text.getvalue()


def to_json(report: Report) -> str:
    """Title, sentences, settings and rows. A number that is not finite becomes null: JSON has no word for it."""
    value = {
        "title": report.title,
        "made": report.made,
        "made_with": f"idecode_core {__version__}",
        "commands": list(report.commands),
        "sentences": list(report.sentences),
        "settings": {name: plain(value) for name, value in report.settings.items()},
        "rows": [
            {name: plain(value) for name, value in row.items() if not isinstance(value, Picture)}
            for row in report.rows
        ],
    }
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def flat_row(row: Row) -> dict[str, Value]:
    flat: dict[str, Value] = {}
    for name, value in row.items():
        if isinstance(value, tuple):
            flat.update({f"{name}_{i}": entry for i, entry in enumerate(value, start=1)})
        elif not isinstance(value, Picture):
            flat[name] = value
    return flat


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
