"""What MkDocs asks us while it builds the site: pages that are generated, and links that lead out of docs/.

Nothing that is generated is committed: commands come from typer, the library from docstrings, notebooks are executed.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.site import commands, library, notebooks

ROOT = Path(__file__).parents[2]
MOVED = {
    "RESULTS.md": "tables.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "README.md": "index.md",
    "CITATION.cff": "paper.md",
    **{f"notebooks/{path.name}": f"notebooks/{path.stem}.md" for path in notebooks.all_of_them()},
    "lessons/try-it.html": "lessons/try-it.html",
    "lessons/worksheet.html": "lessons/worksheet.html",
}
"""File of the repository -> where it stands on the site."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The rooms of the library stand under Reference, in the order of their page."""
    (reference,) = (section["Reference"] for section in config.nav or [] if "Reference" in section)
    rooms = [{title: f"reference/{room}.md"} for room, title in library.ROOMS.items()]
    reference.insert(1, {"Rooms of the library": rooms})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that have no file in docs/, and the files that pages show."""

    def add(place: str, content: str | bytes) -> None:
        files.append(File.generated(config, place, content=content))

    for name in ("RESULTS.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        add(MOVED[name], (ROOT / name).read_text(encoding="utf-8"))
    for figure in (ROOT / "results").glob("*.svg"):
        add(f"results/{figure.name}", figure.read_bytes())
    for page in (ROOT / "lessons").glob("*.html"):
        add(f"lessons/{page.name}", page.read_bytes())
    add("llms.txt", (ROOT / "llms.txt").read_bytes())
    add("reference/command-line.md", commands.page())
    for place, text in {**library.pages(), **notebooks.pages()}.items():
        add(place, text)
    add("assets/plotly.min.js", notebooks.plotly_script())
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to files of the repository lead to their page; a file without a page becomes its name."""
    here = Path(page.file.src_uri)
    outside = (
        here.name in set(MOVED.values()) - {"index.md", "paper.md"} and not (ROOT / "docs" / here).exists()
    )

    def there(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        path, _, part = target.partition("#")
        if "://" in target or not path:
            return link[0]
        # As the repository sees it: root files link from the root, pages of docs/ from docs/.
        seen = (ROOT / ("" if outside else Path("docs") / here.parent) / path).resolve()
        if not seen.is_relative_to(ROOT) or not seen.exists():
            return link[0]  # a generated page, or a broken link, which the strict build refuses
        name = seen.relative_to(ROOT).as_posix()
        if name in MOVED:
            place = MOVED[name]
        elif name.startswith(("docs/", "results/")) and seen.suffix in (".md", ".svg", ".png", ".gif"):
            place = name.removeprefix("docs/")
        else:
            return f"{words} (`{name}`)" if name not in words else words
        up = "../" * (len(here.parents) - 1)
        return f"{picture}[{words}]({up}{place}{'#' if part else ''}{part})"

    return re.sub(
        r"(```.*?```)|" + LINK.pattern,
        lambda m: m[0] if m[1] else there(LINK.match(m[0])),
        markdown,
        flags=re.DOTALL,
    )  # type: ignore[arg-type]
