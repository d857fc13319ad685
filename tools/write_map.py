"""CONTRIBUTING's map and counts, from the import rules and the files themselves: `python -m tools.write_map`."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
CODE = ("idecode_core", "paper", "lessons", "ui", "pages")
CORE_RULE = "The rooms of the core, from the commands down to the statistics"
ABOVE = (("app.py  pages/  notebooks/", "read settings, get input, call the core, show the result"),)
BESIDE = (
    ("ui/", "what pages share and only Streamlit needs, a folder per page"),
    (
        "paper/",
        "each table and figure of the paper, its numbers, rivals that only its tables use; not installed",
    ),
    ("lessons/", "the worlds of the teaching pages, their figures and the page that moves"),
)


def first_line(module: Path) -> str:
    """What a module says of itself."""
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return text.splitlines()[0].rstrip(".") if text else ""


def layers() -> list[str]:
    """The rooms from the commands down, as `make lint` checks them."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = rules["tool"]["importlinter"]["contracts"]
    return next(rule["layers"] for rule in contracts if rule["name"] == CORE_RULE)


def core_map() -> str:
    """One line per room; rooms of one layer stand together, a line may import what stands below it."""
    rows = [*ABOVE, *((name, words) for name, words in BESIDE if (ROOT / name).is_dir())]
    for layer in layers():
        for name in re.split(r"\s*[|:]\s*", layer):
            room = ROOT / "idecode_core" / name
            file = room / "__init__.py" if room.is_dir() else room.with_suffix(".py")
            rows.append((f"{name}/" if room.is_dir() else f"{name}.py", first_line(file)))
    width = max(len(name) for name, _ in rows) + 2
    return "```\n" + "\n".join(f"{name:{width}}{words}".rstrip() for name, words in rows) + "\n```"


def counts() -> str:
    """Files and lines of the product's code."""
    rows = ["| | files | lines |", "|---|---:|---:|"]
    totals = [0, 0]
    for name in CODE:
        files = sorted((ROOT / name).rglob("*.py"))
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        totals = [totals[0] + len(files), totals[1] + lines]
        rows.append(f"| {name} | {len(files)} | {lines:,} |")
    return "\n".join([*rows, f"| together | {totals[0]} | {totals[1]:,} |"])


def written(text: str, part: str, content: str) -> str:
    """The text with what stands between a part's markers replaced."""
    begin, end = f"<!-- {part} by tools/write_map.py -->", f"<!-- end of {part} -->"
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{content}\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    path = ROOT / "CONTRIBUTING.md"
    text = written(path.read_text(encoding="utf-8"), "map", core_map())
    path.write_text(written(text, "counts", counts()), encoding="utf-8")
