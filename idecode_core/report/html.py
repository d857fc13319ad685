"""A report as one HTML file that needs nothing else: styles, pictures and Plotly's script are inside it.

It follows the reader's light or dark mode, figures too.
"""

import base64
from functools import cache
from typing import Any

from idecode_core import __version__
from idecode_core.report.content import Figure, Picture, Report, Value
from idecode_core.report.sparkline import sparkline

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
