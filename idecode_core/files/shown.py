"""What users see: how far some work is, and results that show themselves in a notebook or as a data frame; how, says `report.show`,
which is a layer above and loaded when it is needed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from idecode_core.errors import SettingError

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

Report = Callable[[str, int, int], None]
"""Called with (what is being done, how much of it is done, how much there is). Whatever it raises stops the work."""


def progress_of(report: Report | None, what: str, total: int) -> Callable[[int], None] | None:
    """The report of one part of the work, which counts up to `total`; None where nobody listens."""
    return None if report is None else lambda done: report(what, done, total)


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, in a terminal or a notebook; nothing elsewhere. Call it with how much is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    in_notebook = Console().is_jupyter
    console = Console(stderr=True, force_jupyter=False, force_terminal=True if in_notebook else None)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def data_frame(rows: Any) -> "pandas.DataFrame":
    """Rows, or columns by their titles, as pandas has them."""
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise SettingError("A data frame needs the package pandas: run `pip install pandas`.") from error
    return DataFrame(rows)


class Shown:
    """In a notebook its table and figures, in a terminal a few plain lines, by its `repr`."""

    def _repr_html_(self) -> str | None:
        try:
            html: str = import_module("idecode_core.report.show").as_html(self)
        except ModuleNotFoundError:  # without the extra [report]: the plain lines
            return None
        return html

    def _ipython_display_(self) -> None:
        try:
            import_module("idecode_core.report.show").display(self)
        except ModuleNotFoundError:
            print(repr(self))
