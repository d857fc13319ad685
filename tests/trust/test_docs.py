"""What the documentation shows is so: every command parses with the options shown, every block of Python runs, links lead somewhere,
and the site builds without a warning and without asking another server.

Commands are parsed by the program itself, which checks names, options and types; `tests/cli` runs each of them.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image

from idecode_core.cli.app import app
from idecode_core.image.sets import load_images

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
OTHER_PROGRAMS = {
    "make": "its targets are checked below",
    "pip": "installs; tests/trust/test_package.py installs the wheel",
    "docker": "no container engine here; tests/trust/test_package.py does the Dockerfile's steps",
    "curl": "needs a running service; tests/cli/test_serve.py asks one",
    "torchrun": "several processes on GPUs",
    "STUDIO_HOST=studio.example.org": "the proxy's container",
}
"""First word of a line that is no command of ours -> why it is not run here."""
NOT_RUN = {
    "attacks.md": "needs foolbox's minutes; tests/core/test_attacks.py runs it",
    "rivals.md": "fits a rival on CIFAR-10's features",
    "your-own-data.md": "trains; tests/training/test_train_folder.py and notebook 05 do the same",
    "your-own-model.md": "needs networks of others; tests/core/test_user_network.py runs each case",
    "ecosystem.md": "logs to MLflow; tests/cli/test_ecosystem.py runs it",
    "guarantees.md": "other packages' detectors; tests/core/test_certify_packages.py runs them",
    "get-started.md": "needs the detector that the page trains; tests/training/test_train_folder.py makes one",
}
"""Page -> why its Python is only compiled here."""


def commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for language, code in FENCE.findall(page.read_text(encoding="utf-8")):
            if language in ("", "sh", "bash", "console"):
                lines = re.sub(r"\\\n\s*", " ", code).splitlines()
                found += [
                    (page.name, line.strip()) for line in lines if line.strip() and not line.startswith("#")
                ]
    return found


def words_of(line: str) -> list[str]:
    return shlex.split(line.partition(" | ")[0], comments=True)


def test_every_command_in_the_documentation_parses() -> None:
    root = typer.main.get_command(app)
    from paper.commands import app as paper

    checked, wrong = 0, []
    for page, line in commands():
        words = words_of(line)
        if words[:3] == ["python", "-m", "idecode_core"]:
            words = ["idecode", *words[3:]]
        if words[0] != "idecode":
            known = words[0] in OTHER_PROGRAMS or words[:2] in (["python", "-m"], ["python", "-c"])
            wrong += [] if known else [f"{page}: {line}: no command of ours, and no reason why it is not run"]
            continue
        group, name, rest = root, words[1], words[2:]
        if name in ("paper", "reproduce"):
            group = typer.main.get_command(paper)
            name, rest = ("reproduce", rest) if name == "reproduce" else (rest[0], rest[1:])
        if name == "data":
            group, name, rest = root.commands["data"], rest[0], rest[1:]
        if name.startswith("-") or rest[:1] == ["--help"]:
            continue
        try:
            group.commands[name].make_context(name, rest)
            checked += 1
        except Exception as error:
            wrong.append(f"{page}: {line}: {error!r}")
    assert wrong == []
    assert checked > 40


def python_blocks() -> list[tuple[str, str]]:
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    joined = {
        name: "\n".join(c for lang, c in FENCE.findall(text) if lang in ("python", "py"))
        for name, text in texts.items()
    }
    return [(name, code) for name, code in joined.items() if code]


@pytest.mark.parametrize(("page", "code"), python_blocks(), ids=[name for name, _ in python_blocks()])
def test_python_in_the_documentation_runs(
    page: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compile(code, page, "exec")
    if page in NOT_RUN:
        return
    generator = np.random.default_rng(0)
    given = {  # what the pages call by these names
        "scores_of_normal_points": generator.normal(size=500),
        "new_scores": generator.normal(size=50),
        "scores_then": generator.normal(size=300),
        "scores_now": generator.normal(size=100) + 1,
        "calibration_scores": generator.normal(size=300),
        "stream_scores": generator.normal(size=200) + 2,
    }
    Image.fromarray(load_images("photos-sample").x[0]).save(tmp_path / "photo.jpg")
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(ROOT / "checkpoints"))
    monkeypatch.chdir(tmp_path)
    exec(compiled, given)


def test_reasons_are_given_only_for_pages_that_need_one() -> None:
    assert set(NOT_RUN) <= {name for name, _ in python_blocks()}


def test_every_target_of_make_in_the_documentation_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    shown = {
        word
        for page in PAGES
        for word in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert shown <= targets


def test_llms_txt_leads_to_files_that_exist() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", (ROOT / "llms.txt").read_text(encoding="utf-8"))
    assert len(targets) > 8
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_site_builds_without_a_warning_and_asks_nobody(tmp_path: Path) -> None:
    variables = {**os.environ, "IDECODE_DOCS_NOTEBOOKS": "as-stored", "NO_MKDOCS_2_WARNING": "1"}
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    built = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    loaded = re.compile(
        r"<(?:script|img|iframe)[^>]*\ssrc=\"?https?:|<link[^>]*rel=\"?(?:stylesheet|preconnect)[^>]*https?:"
    )
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 60
    assert [page.name for page in pages if loaded.search(page.read_text(encoding="utf-8"))] == []
    assert (tmp_path / "site" / "lessons" / "try-it.html").exists()
