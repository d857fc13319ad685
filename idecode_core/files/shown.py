"""Results that show themselves in a notebook; how, says `report.show`, which is a layer above and loaded when it is needed."""

from importlib import import_module


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
