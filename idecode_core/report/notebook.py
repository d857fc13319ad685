"""A page as a notebook that computes it again: one Jinja template per kind, the page's settings and numbers as data in its first cell.

Arrays and files lie beside the notebook, in an npz or in a session; nothing is packed into cells. It runs in any folder, wherever
`idecode_core` is installed.
"""

import html
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idecode_core.errors import SettingError
from idecode_core.files.write import could_not_write, write_bytes

WIDTH = 100  # of a line of data


@dataclass(frozen=True)
class Notebook:
    """A notebook file and what lies beside it."""

    name: str
    """Of the file, without its ending."""
    text: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Path beside the notebook -> content."""

    def _all(self) -> dict[str, bytes]:
        return {f"{self.name}.ipynb": self.text.encode(), **self.files}

    def zipped(self) -> bytes:
        """To be unpacked anywhere."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self._all().items():
                archive.writestr(name, data)
        return buffer.getvalue()

    def write_into(self, folder: Path) -> Path:
        """The notebook's path in a folder of this machine. What somebody has changed there since is kept beside, under another
        name."""
        try:
            for name, data in self._all().items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                keep_changed(folder / name, data)
                write_bytes(folder / name, data)
        except OSError as error:
            raise could_not_write(folder, error) from error
        return folder / f"{self.name}.ipynb"


def keep_changed(path: Path, data: bytes) -> None:
    """Rename a file that is there already and is another one: a.ipynb is a (1).ipynb then."""
    if path.is_file() and (path.stat().st_size != len(data) or path.read_bytes() != data):
        free = (path.with_stem(f"{path.stem} ({i})") for i in count(1))
        path.rename(next(candidate for candidate in free if not candidate.exists()))


def from_template(
    name: str,
    title: str,
    settings: Mapping[str, Any],
    shown: Mapping[str, Any],
    *,
    arrays: Mapping[str, NDArray[Any]] | None = None,
    files: Mapping[str, bytes] | None = None,
    **choices: bool,
) -> Notebook:
    """The template NAME.py.jinja beside this file: cells begin with `# %%`, those of text with `# %% [markdown]`.

    `settings` and `shown` go in as literals, `title` as one line of text, and `choices` only decide which lines are there: a name
    from a file is never code. `arrays` lie beside the notebook in NAME.npz.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("idecode_core.report", ""),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    beside = dict(files or {})
    if arrays:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
        beside[f"{name}.npz"] = buffer.getvalue()
    values = {
        "title": plain_line(title),
        "settings": literal(dict(settings)),
        "shown": literal(dict(shown)),
        **choices,
    }
    # Cells are cut before values go in: no value can begin a cell of its own.
    source, _, _ = environment.loader.get_source(environment, f"{name}.py.jinja")  # type: ignore[union-attr]
    cells: list[tuple[bool, str]] = []
    for part in source.split("# %%")[1:]:
        kind, _, body = part.partition("\n")
        text, is_text = (
            environment.from_string(body.strip("\n")).render(values).strip("\n"),
            "[markdown]" in kind,
        )
        if is_text:
            text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in text.splitlines())
        if text:
            cells.append((is_text, text))
    return Notebook(name, _to_json(cells), beside)


def _to_json(cells: list[tuple[bool, str]]) -> str:
    """The notebook as JSON, without outputs; the same cells give the same file."""
    import nbformat
    import nbformat.v4

    build: Any = nbformat.v4  # has no types
    nodes = [
        (build.new_markdown_cell if is_text else build.new_code_cell)(text, id=f"cell-{i}")
        for i, (is_text, text) in enumerate(cells)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = build.new_notebook(
        cells=nodes, metadata={"kernelspec": kernel, "language_info": {"name": "python"}}
    )
    nbformat.validate(notebook)
    text: str = build.writes(notebook)
    return text + "\n"


def plain_line(text: str) -> str:
    """Text from a stranger in a cell of Markdown: one line, and no markup.

    >>> plain_line("a\\n# b <img> [x](y)")
    'a # b &lt;img&gt; \\\\[x\\\\](y)'
    """
    plain = html.escape(" ".join(text.split()), quote=False)
    return "".join(f"\\{c}" if c in "\\`*_[]$|~" else c for c in plain)


def literal(value: Any, indent: int = 0) -> str:
    """Data as Python, in lines that can be read; only what a reader could have typed.

    >>> literal({"n": 5, "limit": float("inf"), "names": ["a'b"]})
    '{"n": 5, "limit": float("inf"), "names": ["a\\'b"]}'
    """
    if isinstance(value, np.ndarray | np.generic):
        return literal(value.tolist(), indent)
    if isinstance(value, Mapping):
        inside, ends = (
            [f"{literal(str(key))}: {literal(entry, indent + 4)}" for key, entry in value.items()],
            "{}",
        )
    elif isinstance(value, list | tuple):
        inside, ends = [literal(entry, indent + 4) for entry in value], "[]"
    elif isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    elif isinstance(value, str):
        return _text(value)
    elif value is None or isinstance(value, int | float | bool):
        return repr(value)
    else:
        raise SettingError(
            f"A notebook cannot hold a {type(value).__name__} as data. Give numbers, text, lists, tables or arrays."
        )
    line = ", ".join(inside)
    if indent + len(line) <= WIDTH and "\n" not in line:
        return f"{ends[0]}{line}{ends[1]}"
    margin = " " * (indent + 4)
    if isinstance(value, Mapping) or "\n" in line:
        body = "".join(f"{margin}{entry},\n" for entry in inside)
    else:
        body = "".join(f"{margin}{some},\n" for some in _filled(inside, WIDTH - indent))
    return f"{ends[0]}\n{body}{' ' * indent}{ends[1]}"


def _text(value: str) -> str:
    """In double quotes where that needs no escape."""
    text = repr(value)
    return f'"{value}"' if text == f"'{value}'" and '"' not in value else text


def _filled(words: list[str], width: int) -> list[str]:
    """Entries of a long list, as many as fit into a line."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += f", {word}" if lines[-1] else word
    return lines
