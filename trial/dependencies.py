"""docs/dependencies.md: every direct dependency with its licence, as the package itself says, and what it is here for.

Run `python -m trial.dependencies` after a change of pyproject.toml or requirements-dev.in.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "dependencies.md"
UNDECLARED = "not declared"
LINE = re.compile(r'^\s*"?(?P<name>[A-Za-z0-9_.-]+)(\[[a-z,]*\])?[<>=!~][^#"]*"?,?\s*#\s*(?P<words>.+)$')


@dataclass(frozen=True)
class Dependency:
    name: str
    needed_for: str
    """The package itself, one of its extras, or development."""
    reason: str


def direct() -> Iterator[Dependency]:
    """From the comments beside the dependencies: `# licence: reason`."""
    needed_for = ""
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line != "[project.optional-dependencies]":
            needed_for = ""
        if begin := re.match(r"^([a-z]+) = \[$", line):
            needed_for = "everything" if begin[1] == "dependencies" else f"[{begin[1]}]"
        elif needed_for and (found := LINE.match(line)):
            yield Dependency(found["name"], needed_for, reason(found["words"]))
    for line in (ROOT / "requirements-dev.in").read_text(encoding="utf-8").splitlines():
        if found := LINE.match(line):
            yield Dependency(found["name"], "development", reason(found["words"]))


def reason(words: str) -> str:
    """Without the licence, which the table takes from the package itself."""
    return words.partition(": ")[2] or words


def named_in_pyproject() -> set[str]:
    """Every direct dependency, read without looking at comments; this package's own extras left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    names = {re.split(r"[\[<>=!~; ]", one)[0] for one in wanted}
    return names - {project["name"]}


def licence(name: str) -> str:
    """As the installed package declares it; its classifiers where the field is missing or is the whole text, else how the
    licence file that it brings begins."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return "not installed here"
    declared = (found.get("License-Expression") or found.get("License") or "").strip()
    if declared not in ("", "UNKNOWN") and "\n" not in declared and len(declared) < 60:
        return declared
    classified = [
        c.split(" :: ")[-1] for c in found.get_all("Classifier") or () if c.startswith("License ::")
    ]
    return ", ".join(classified) or next(
        filter(None, map(first_line, metadata.files(name) or ())), UNDECLARED
    )


def first_line(path: metadata.PackagePath) -> str:
    """Of a package's licence file; empty for any other of its files."""
    if path.stem.upper() not in ("LICENSE", "LICENCE", "COPYING") or ".dist-info" not in str(path):
        return ""
    return path.read_text(encoding="utf-8").strip().partition("\n")[0].strip()


def version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def undeclared() -> list[str]:
    """A paragraph on each package that says nothing of its licence."""
    return [
        f"**A licence that is not declared.** The package `{one.name}` ({one.needed_for}: {one.reason}) names no licence and brings\n"
        "none: ask its author before you pass it, or what is made with it, on.\n"
        for one in direct()
        if licence(one.name) == UNDECLARED
    ]


def document() -> str:
    rows = [
        f"| {one.name} | {version(one.name)} | {licence(one.name)} | {one.needed_for} | {one.reason} |"
        for one in direct()
    ]
    return "\n".join(
        [
            "# Direct dependencies",
            "",
            "Written by `python -m trial.dependencies`: licences are read from the metadata of the installed packages, or from the",
            "licence file that they bring where those say nothing, reasons from the comments in `pyproject.toml` and",
            "`requirements-dev.in`. Exact versions with hashes of these and of all that they need are in `requirements.txt` and",
            "`requirements-dev.txt` (`make lock`); `pip install --require-hashes` checks them. `make trial` asks pip-audit for",
            "known vulnerabilities where its database is within reach.",
            "",
            "| package | version tried | licence | needed for | reason |",
            "|---|---|---|---|---|",
            *rows,
            "",
            *undeclared(),
        ]
    )


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
