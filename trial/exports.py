"""Part 9: what is exported of files and detectors with hostile names: reports as CSV and HTML, and notebooks.

A name stays text. No cell of a table runs in a spreadsheet, no tag comes into the page, and a notebook has the code that it has
for harmless names.
"""

import ast
import csv
import io
import json
import re
from html.parser import HTMLParser

import numpy as np

from idecode_core.conformal.judge import judge
from idecode_core.report import (
    InspectedSample,
    Inspection,
    inspection_notebook,
    inspection_report,
    to_csv,
    to_html,
)
from trial import small
from trial.table import Outcome

MARKUP = re.compile(r"<(script|img)|(?<!\\)\]\((javascript|http://x)")
FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
PIECES = (
    *("=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-2+3", "\uff1d1", '=HYPERLINK("http://x")', "\t=1", "\ufeff=1", "\0"),
    *("\r", "\n", "\r\n", "\x0b", "\u2028", "\x85", '"', "'", '"""', "'''", ",", ";", "\\", "\\n", "{", "}", "{{ 1 }}", "{% x %}"),
    *("# %%\n", "# %% [markdown]\n", "\nimport os\n", "__import__('os').system('x')", "%run x", "!x", "</script>", "<script>x</script>"),
    *("<img src=x onerror=x>", "[x](javascript:x)", "![](http://x/y.png)", "$$x$$", "`x`", "|", "**", "\u202e", "&lt;", "a.png", "ä", " "),
)  # fmt: skip


class Tags(HTMLParser):
    """The tags of a page with the names of their attributes; a picture's and a link's address stays here."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(sorted(name for name, _ in attrs))))
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]


def inspection(detector: str, name: str) -> Inspection:
    made = small.detector("exported")
    pictures = small.pictures(2, 3)
    vectors = made.score_vectors(pictures, n=2)
    judgement = judge(made.calibration, vectors, epsilon=0.1)
    samples = tuple(
        InspectedSample(f"{name}{i}", b"", "0" * 32, tuple(vector.tolist()), verdict)
        for i, (vector, verdict) in enumerate(zip(vectors, judgement, strict=True))
    )
    return Inspection(detector, "", "", 2, 0.1, "sum", False, 0, "image", made.calibration.k, False, samples)


def try_exports(seed: int, count: int) -> Outcome:
    outcome, generator = (
        Outcome("exports", "CSV, HTML and notebooks with hostile names"),
        np.random.default_rng(seed),
    )
    harmless = inspection("good", "a.png")
    page, code = Tags(to_html(inspection_report(harmless))), shape(inspection_notebook(harmless, {}).text)
    with outcome.timed():
        for i in range(count):
            few = generator.choice(len(PIECES), int(generator.integers(1, 5)))
            name = PIECES[i] if i < len(PIECES) else "".join(PIECES[one] for one in few)
            case, outcome.cases = inspection(name, name), outcome.cases + 1
            try:
                for words in (*in_table(case), *in_page(case, page), *in_notebook(case, code)):
                    outcome.blame("wrong", f"{name!r}: {words}")
            except Exception as error:
                outcome.blame("tracebacks", f"{name!r}: {type(error).__name__}: {error}"[:300])
    return outcome


def in_table(case: Inspection) -> list[str]:
    text = to_csv(inspection_report(case))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    wrong = [f"{len(rows)} rows"] if len(rows) != 1 + len(case.samples) else []
    wrong += ["rows of other lengths"] if len({len(row) for row in rows}) != 1 else []
    column = rows[0].index("name")
    names = [line for row in rows if len(row) > column for line in row[column].splitlines()]
    wrong += [f"a formula: {line}" for line in names if line.lstrip(" \t\r\n\0\ufeff").startswith(FORMULA)]
    return wrong + [f"a row that begins so: {line}" for line in text.splitlines() if line.startswith(FORMULA)]


def in_page(case: Inspection, harmless: Tags) -> list[str]:
    page = Tags(to_html(inspection_report(case)))
    wrong = ["other tags than for a harmless name"] if page.found != harmless.found else []
    return wrong + [f"an address: {one}" for one in page.addresses if one not in harmless.addresses]


def shape(notebook: str) -> list[str]:
    """The cells: of code the syntax without its constants, of text its kind alone."""
    cells = []
    for cell in json.loads(notebook)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            cells.append("text")
            continue
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant):
                node.value = None
        cells.append(ast.dump(tree))
    return cells


def in_notebook(case: Inspection, harmless: list[str]) -> list[str]:
    text = inspection_notebook(case, {}).text
    wrong = ["another program than for a harmless name"] if shape(text) != harmless else []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and (markup := MARKUP.search(source)):
            wrong.append(f"markup in a text: {markup[0]}")
    return wrong
