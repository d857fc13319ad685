"""What README and CONTRIBUTING say is so: files they point to exist, code runs, commands have the options shown."""

import re
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from idecode_core.cli.app import app
from idecode_core.image.sets import load_images

ROOT = Path(__file__).parent.parent
TEXTS = ("README.md", "CONTRIBUTING.md")
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_to_files_that_exist(name: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (ROOT / target).exists()]
    assert missing == []


def test_the_five_lines_of_python_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 5
    (tmp_path / "checkpoints").symlink_to(ROOT / "checkpoints")
    Image.fromarray(load_images("photos-sample").x[0]).save(tmp_path / "photo.jpg")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert "True" in capsys.readouterr().out


def test_commands_exist_with_the_options_that_are_shown() -> None:
    shown = re.findall(r"^python -m idecode_core (\w+)([^#\n]*)", README, re.MULTILINE)
    assert len(shown) > 4
    for command, arguments in shown:
        result = CliRunner().invoke(app, [command, "--help"])
        assert result.exit_code == 0
        assert [option for option in re.findall(r"--\w+", arguments) if option not in result.output] == []


def test_the_readme_names_every_notebook() -> None:
    assert [path.stem for path in (ROOT / "notebooks").glob("*.ipynb") if path.stem not in README] == []


def test_make_bench_runs_every_benchmark() -> None:
    run = re.findall(r"-m benchmarks\.(\w+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert sorted(run) == sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))
