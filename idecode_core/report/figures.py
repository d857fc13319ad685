"""Plotly figures inside an HTML file: the data inline, the script once, the ink in the page's own colour."""

from functools import cache

from idecode_core.report.content import Figure


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
    """Plotly's own script, to be put into the page once."""
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script
