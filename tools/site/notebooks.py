"""The notebooks as pages, executed, with what they print and draw. What was executed is kept until a notebook or the library changes.

`IDECODE_DOCS_NOTEBOOKS=as-stored` leaves them as they are stored, without outputs: for a quick look at the text.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".cache" / "notebooks"
PLOTLY = "application/vnd.plotly.v1+json"
LONGEST = 200_000
"""Characters of one HTML output that a page takes: reports bring a copy of Plotly with them, which the site has once."""


def all_of_them() -> list[Path]:
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def plotly_script() -> bytes:
    """The library that draws the figures, from the installed package: no page asks another server for it."""
    return files("plotly").joinpath("package_data/plotly.min.js").read_bytes()


def pages() -> dict[str, str]:
    """Place on the site -> Markdown."""
    as_stored = os.environ.get("IDECODE_DOCS_NOTEBOOKS") == "as-stored"
    rendered = {}
    for path in all_of_them():
        text = path.read_text(encoding="utf-8") if as_stored else executed(path)
        rendered[f"notebooks/{path.stem}.md"] = page(json.loads(text)["cells"], path.name)
    return rendered


def page(cells: list[dict[str, Any]], name: str) -> str:
    """Markdown of a notebook, and what draws its figures once the page is there."""
    text = "\n\n".join(blocks(cells, name))
    script = '<script src="../assets/plotly.min.js"></script>'
    return f"{text}\n\n{script}\n" if 'class="figure"' in text else text


def executed(path: Path) -> str:
    """The notebook with its outputs, from the store where it, the library and the detectors' settings are as they were."""
    import nbformat
    from nbclient import NotebookClient

    sources = sorted([*(ROOT / "idecode_core").rglob("*.py"), *(ROOT / "lessons").rglob("*.py"), path])
    state = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    kept = KEPT / f"{path.stem}-{state}.ipynb"
    if not kept.exists():
        notebook = nbformat.read(path, as_version=4)
        with an_app_of_its_own():
            NotebookClient(
                notebook,
                timeout=600,
                kernel_name="python3",
                resources={"metadata": {"path": str(path.parent)}},
                extra_arguments=[
                    "--IPKernelApp.log_level=ERROR"
                ],  # else it warns that it speaks TCP to this machine
            ).execute()
        KEPT.mkdir(parents=True, exist_ok=True)
        for old in KEPT.glob(f"{path.stem}-*.ipynb"):
            old.unlink()
        nbformat.write(notebook, kept)
    return kept.read_text(encoding="utf-8")


@contextmanager
def an_app_of_its_own() -> Iterator[None]:
    """Notebooks open the app: on sessions that go with it, and not on those of whoever builds the site."""
    from idecode_core import studio

    before = os.environ.get("IDECODE_SESSIONS")
    with tempfile.TemporaryDirectory() as place:
        os.environ["IDECODE_SESSIONS"] = str(Path(place) / "sessions")
        try:
            yield
        finally:
            studio.close()
            os.environ.pop("IDECODE_SESSIONS")
            if before is not None:
                os.environ["IDECODE_SESSIONS"] = before


def blocks(cells: list[dict[str, Any]], name: str) -> Iterator[str]:
    """Markdown of each cell and of what it gave."""
    first = True
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
            if first:
                yield f"*This page is `notebooks/{name}`, run from top to bottom; `make notebook` opens it.*"
                first = False
        elif cell["cell_type"] == "code" and source.strip():
            yield f"```python\n{source}\n```"
            for number, output in enumerate(cell["outputs"]):
                yield shown(output, f"{cell.get('id', '')}-{number}")


def shown(output: dict[str, Any], identity: str) -> str:
    """One output: a figure, a picture, HTML, or text."""
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```" if output["name"] == "stdout" else ""
    data = output.get("data", {})
    if PLOTLY in data:
        figure = json.dumps({key: data[PLOTLY][key] for key in ("data", "layout")}).replace("</", "<\\/")
        return (
            f'<div id="figure-{identity}" class="figure"></div>\n<script>document.addEventListener("DOMContentLoaded", () => '
            f'{{ const f = {figure}; Plotly.newPlot("figure-{identity}", f.data, f.layout, {{responsive: true}}); }});</script>'
        )
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    html = "".join(data.get("text/html", ""))
    if 'src="http://localhost:' in html:
        return "*The app is shown here, on what the notebook holds.*"
    if "application/vnd.jupyter.widget-view+json" in data:
        return "*Sliders for n and epsilon, with the figure that follows them.*"
    if html and len(html) < LONGEST:
        return f"<div>{' '.join(html.split())}</div>"
    return f"```text\n{''.join(data.get('text/plain', '')).rstrip()}\n```"
