"""What the documentation shows is so: commands and Python run, links lead somewhere, and the site builds without a warning and
without asking another server.

Each page is followed in a folder of its own with small made files. What would take hours, a cluster or another machine is parsed by the
program itself, which checks names, options and types; why, and which test runs it, stands beside it.
"""

# ruff: noqa: F811  `small_network` is a fixture of another file
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import typer
from PIL import Image
from playwright.sync_api import Page, expect
from small import random_images
from test_train_folder import small_network, write_pictures  # noqa: F401  a fixture

import idecode_core
from idecode_core import train_folder
from idecode_core.cli.app import app, main
from idecode_core.image.sets import load_images
from tools.site import notebooks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`((?:idecode|python\s+-m\s+idecode_core)\s[^`]+)`")
OTHER_PROGRAMS = {
    "make": "its targets are checked below",
    "pip": "installs; tests/trust/test_package.py installs the wheel",
    "docker": "no container engine here; tests/trust/test_package.py does the Dockerfile's steps",
    "curl": "needs a running service; tests/cli/test_service.py asks one",
    "python": "research and benchmarks of many minutes",
}
"""First word of a line that is no command of ours -> why it is not run here."""
ONLY_PARSED = {
    r"idecode (app|serve)": "runs until it is stopped; tests/browser and tests/cli/test_serve.py start them",
    r"idecode mcp": "speaks with an assistant; tests/cli/test_tools.py is one",
    r"idecode pull": "needs another machine; tests/cli/test_pull.py fetches from a server of its own",
    r"idecode score .*(--workers|--address)": "starts Ray; tests/cli/test_cluster.py does",
    r"idecode (paper|reproduce) ": "hours, or writes RESULTS.md; tests/paper recomputes tables",
    r"idecode train [a-z0-9]+-[a-z0-9-]+\b(?!/)": "a recipe: hours; tests/training trains small ones",
    r"idecode train recordings/": "fits networks to sounds; tests/training/test_train_folder.py does",
    r"idecode merge .*(cifar10-joint-wide|@distance|@vim)": "the line before needs minutes or hours; tests/core/test_merge.py",
    r"idecode evaluate": "1,500 pictures; tests/cli/test_cli_evaluate.py evaluates",
    r"idecode detect .*(--model |--trust-program)": "a network of the reader's; tests/cli/test_user_network_commands.py",
    r"idecode detect .*checkpoints/vim": "a rival that the line before fits; tests/paper fits it",
}
"""Commands of ours that are parsed and not run -> why, and what runs them."""
PYTHON_NOT_RUN = {
    "your-own-data.md": "trains three times; tests/training/test_train_folder.py and notebook 05 do the same",
    "your-own-model.md": "needs networks of others; tests/core/test_user_network.py runs each case",
    "guarantees.md": "other packages' detectors; tests/core/test_certify_packages.py runs them",
}
"""Page -> why its Python is only compiled here."""


def commands(text: str) -> list[str]:
    """The lines of a page's blocks without a language, as one types them; `idecode` for both ways to start it."""
    blocks = [code for language, code in FENCE.findall(text) if language in ("", "sh", "bash", "console")]
    lines = re.sub(r"\\\n\s*", " ", "".join(blocks)).splitlines()
    return [one_name(line) for line in lines if line.strip() and not line.startswith("#")]


def one_name(line: str) -> str:
    return re.sub(r"^python -m idecode_core\b", "idecode", " ".join(line.split("  #")[0].split()))


def words_in_the_text(text: str) -> list[str]:
    """Commands within sentences, where they are whole: `idecode COMMAND` and `idecode train ...` stand for others."""
    spans = [one_name(span) for span in SPAN.findall(FENCE.sub("", text))]
    return [span for span in spans if not re.search(r"\.\.\.|COMMAND|\[", span)]


def parse(line: str) -> None:
    """Have the program itself read a command, without running it."""
    from paper.commands import app as paper

    root = typer.main.get_command(app)
    name, *rest = shlex.split(line.partition(" | ")[0], comments=True)[1:]
    group = typer.main.get_command(paper) if name in ("paper", "reproduce") else root
    if name in ("paper", "data"):
        group = group if name == "paper" else root.commands["data"]
        name, *rest = rest or ["--help"]
    if not name.startswith("-") and "--help" not in rest:
        group.commands[name].make_context(name, rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_parses(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wrong = []
    for line in commands(text):
        if line.split()[0] == "idecode":
            continue
        known = re.sub(r"^\w+=\S+ ", "", line).split()[0] in OTHER_PROGRAMS
        wrong += [] if known else [f"{line}: no command of ours, and no reason why it is not run"]
    shown = [line for line in commands(text) if line.startswith("idecode ")]
    for line in (*shown, *words_in_the_text(text)):
        try:
            parse(line)
        except Exception as error:
            if line in shown or "MissingParameter" not in repr(error):  # a sentence may say `idecode train`
                wrong.append(f"{line}: {error!r}")
    assert wrong == []


def python_of(text: str) -> str:
    return "\n".join(code for language, code in FENCE.findall(text) if language in ("python", "py"))


def to_run(text: str) -> list[str]:
    ours = [line for line in commands(text) if line.startswith(("idecode ", "python -c "))]
    return [line for line in ours if not any(re.match(pattern, line) for pattern in ONLY_PARSED)]


def runs_something(page: Path) -> bool:
    text = page.read_text(encoding="utf-8")
    return bool(to_run(text) or (python_of(text) and page.name not in PYTHON_NOT_RUN))


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_network: None) -> Path:
    """A folder with the files that pages speak of; detectors are found and written beside it."""
    generator = np.random.default_rng(0)
    detectors = tmp_path / "detectors"
    detectors.mkdir()
    for folder in (ROOT / "checkpoints").iterdir():
        if folder.name == "fashion-rotations":  # MLflow stores it, and follows no link
            shutil.copytree(folder, detectors / folder.name)
        else:
            (detectors / folder.name).symlink_to(folder)
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(detectors))
    monkeypatch.setenv("IDECODE_DATA", str(tmp_path / "no-data"))
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    write_pictures(tmp_path / "my-photos", random_images(50, 24), "jpg")
    for i, name in enumerate(("other-photos", "this-season", "new", "new-photos", "photos"), start=1):
        write_pictures(tmp_path / name, random_images(30 if i < 3 else 3, 24, seed=i), "jpg")
    photograph = Image.fromarray(load_images("photos-sample").x[0])
    for name in ("photo.jpg", "new-photo.jpg"):
        photograph.save(tmp_path / name)
    soundfile.write(tmp_path / "word.wav", generator.normal(0, 0.1, 8_000), 8_000)
    for name, count in (("normal", 500), ("new", 50)):
        np.savetxt(tmp_path / f"{name}.csv", generator.normal(size=count), header="score", comments="")
    return tmp_path


@pytest.mark.parametrize("page", filter(runs_something, PAGES), ids=lambda page: page.name)
def test_commands_and_python_of_a_page_run(page: Path, reader: Path) -> None:
    text = page.read_text(encoding="utf-8")
    lines = to_run(text)
    if re.search(r"\bmine\b", text) and not any(line.startswith("idecode train") for line in lines):
        train_folder("my-photos", "mine")  # as get-started.md does
    for line in lines:
        if line.startswith("python -c "):
            exec(shlex.split(line)[2], {})
            continue
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(line)[1:])
        may_flag = line.split()[1] in ("detect", "judge", "certify")
        assert ended.value.code in ((None, 0, 1) if may_flag else (None, 0)), line
    if page.name not in PYTHON_NOT_RUN:
        generator = np.random.default_rng(0)
        given = {  # what the pages call by these names
            "scores_of_normal_points": generator.normal(size=500),
            "new_scores": generator.normal(size=50),
            "scores_then": generator.normal(size=300),
            "scores_now": generator.normal(size=100) + 1,
            "calibration_scores": generator.normal(size=300),
            "stream_scores": generator.normal(size=200) + 2,
            "my_pictures": random_images(30, 32),
            "x": generator.random((4, 3, 32, 32), dtype=np.float32),
            "y": np.arange(4),
        }
        exec(compile(python_of(text), page.name, "exec"), given)


def test_python_that_is_not_run_compiles_and_reasons_are_given_only_where_needed() -> None:
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    for name in PYTHON_NOT_RUN:
        assert python_of(texts[name])
        compile(python_of(texts[name]), name, "exec")
    lines = [line for text in texts.values() for line in commands(text)]
    unused = [pattern for pattern in ONLY_PARSED if not any(re.match(pattern, line) for line in lines)]
    assert unused == []
    named = re.findall(
        r"tests/\w+(?:/\w+\.py)?",
        " ".join([*ONLY_PARSED.values(), *PYTHON_NOT_RUN.values(), *OTHER_PROGRAMS.values()]),
    )
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_target_of_make_in_the_documentation_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    shown = {
        word
        for page in PAGES
        for word in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert shown <= targets


def test_every_name_that_stays_says_what_it_is() -> None:
    """What `from idecode_core import ...` gives, and what can be asked of it, as the reference shows them."""
    silent = []
    for name in idecode_core.__all__:
        thing = getattr(idecode_core, name)
        members = {name: thing}
        if inspect.isclass(thing):
            members |= {f"{name}.{part}": getattr(thing, part) for part in vars(thing) if part[0] != "_"}
        for place, member in members.items():
            if callable(member) or isinstance(member, property):
                silent += [] if inspect.getdoc(member) else [place]
    assert silent == []


def test_every_variable_that_a_user_sets_is_on_the_page_of_settings() -> None:
    ours = {
        "IDECODE_MODEL",
        "IDECODE_TRUST_PROGRAM",
        "IDECODE_TRAIN",
        "IDECODE_STUDIO_TOKEN",
    }  # set by commands
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "idecode_core").rglob("*.py"))
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert set(re.findall(r"IDECODE_[A-Z_]+", code)) - ours == set(re.findall(r"IDECODE_[A-Z_]+", page))


def test_llms_txt_leads_to_files_that_exist() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", (ROOT / "llms.txt").read_text(encoding="utf-8"))
    assert len(targets) > 8
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_a_notebooks_figure_is_drawn_on_its_page(tmp_path: Path, visitor: Page) -> None:
    """They were empty: the library that draws them was on the site, and no page asked for it."""
    figure = {"data": [{"type": "scatter", "y": [1, 3, 2]}], "layout": {}}
    output = {"output_type": "display_data", "data": {notebooks.PLOTLY: figure}}
    cell = {"cell_type": "code", "id": "a", "source": ["figure"], "outputs": [output]}
    for name in ("notebooks", "assets"):
        (tmp_path / name).mkdir()
    (tmp_path / "assets" / "plotly.min.js").write_bytes(notebooks.plotly_script())
    html = FENCE.sub("", notebooks.page([cell], "a.ipynb"))
    (tmp_path / "notebooks" / "a.html").write_text(f"<!doctype html><meta charset=utf-8>{html}")
    visitor.goto((tmp_path / "notebooks" / "a.html").as_uri())
    expect(visitor.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(1)


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
