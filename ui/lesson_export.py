"""Downloads of the teaching pages: a simulation as files to keep."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ui.export import download_row

if TYPE_CHECKING:
    from idecode_core.report.simulations import Export


def offer(stem: str, make: "Callable[[], Export]") -> None:
    """Offer what `make` returns; it runs on a click only, so let it close over values and import what it needs."""
    download_row(stem, report=lambda: make().report, notebook=lambda: make().notebook, key=stem)
