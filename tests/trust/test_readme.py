"""What README and CONTRIBUTING say is so: files they point to exist, code runs, it is short. Commands: test_docs.py."""

import re
from pathlib import Path

import pytest
from PIL import Image

from idecode_core.image.sets import load_images

ROOT = Path(__file__).parents[2]
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


def test_the_readme_is_one_screen_with_a_moving_picture() -> None:
    assert len(README.splitlines()) <= 120
    picture = ROOT / "docs" / "inspect.gif"
    assert Image.open(picture).n_frames > 2  # type: ignore[attr-defined]
    assert picture.stat().st_size < 1.5e6


def test_the_readme_names_every_notebook() -> None:
    assert [path.stem for path in (ROOT / "notebooks").glob("*.ipynb") if path.stem not in README] == []


def test_make_bench_runs_every_benchmark() -> None:
    run = re.findall(r"-m benchmarks\.(\w+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert sorted(run) == sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))
