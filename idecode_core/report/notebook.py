"""Cells of text and code -> a notebook file. Plain strings in, nbformat JSON out, the same for the same cells."""

from collections.abc import Sequence
from typing import Any

REPOSITORY_VARIABLE = "IDECODE_HOME"

HOME = f"""\
import os
import sys
from pathlib import Path

# The folder that holds idecode_core and checkpoints: the variable {REPOSITORY_VARIABLE}, else this folder or one above it.
start = Path(os.environ.get("{REPOSITORY_VARIABLE}", ".")).resolve()
home = next((folder for folder in (start, *start.parents) if (folder / "idecode_core").is_dir()), None)
if home is None:
    raise FileNotFoundError(
        f"idecode_core is not in {{start}} or above it. Move this notebook into the iDECODe Studio folder, or set "
        "{REPOSITORY_VARIABLE} to that folder before starting Jupyter."
    )
sys.path.insert(0, str(home))"""
"""The first code cell of every notebook: it finds the repository without naming a path of this machine."""


class Text(str):
    """A Markdown cell."""


class Code(str):
    """A code cell."""


Cell = Text | Code


def opening(title: str, about: str) -> list[Cell]:
    """The first cells of a notebook that computes a page again."""
    return [
        Text(f"# {title}\n\n{about} Run it from top to bottom. It stops at the first difference."),
        Code(HOME),
    ]


def to_notebook(cells: Sequence[Cell]) -> str:
    """The notebook as JSON, without outputs."""
    import nbformat
    import nbformat.v4

    build: Any = nbformat.v4  # has no types
    # Numbered ids in place of random ones: the same cells give the same file.
    made = [
        (build.new_markdown_cell if isinstance(cell, Text) else build.new_code_cell)(
            str(cell), id=f"cell-{i}"
        )
        for i, cell in enumerate(cells)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = build.new_notebook(
        cells=made, metadata={"kernelspec": kernel, "language_info": {"name": "python"}}
    )
    nbformat.validate(notebook)
    text: str = build.writes(notebook)
    return text + "\n"
