"""Reads our Dockerfile, so that tests can do its steps where there is no container engine."""

import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass
class Stage:
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)  # (instruction, the rest of its line)

    def all(self, instruction: str) -> list[str]:
        return [rest for word, rest in self.steps if word == instruction]


def stages() -> dict[str, Stage]:
    found: dict[str, Stage] = {}
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        word, _, rest = line.strip().partition(" ")
        if not word or word.startswith("#"):
            continue
        if word == "FROM":
            stage = found[rest.split(" AS ")[1]] = Stage(rest.split(" AS ")[1])
        stage.steps.append((word, rest))
    return found


def here(command: str, folder: Path) -> str:
    """A command of a container, for a folder of this machine and this Python."""
    return command.replace("/wheels", f"{folder}/wheels").replace(
        "python -m", f"{shlex.quote(sys.executable)} -m"
    )


def build_wheel(folder: Path) -> Path:
    """Do the steps of the stage `wheel` in an empty folder; the wheel."""
    source = folder / "src"
    source.mkdir()
    for rest in stages()["wheel"].all("COPY"):
        *names, target = rest.split()
        for name in names:
            copy = source / (name if target == "./" else target)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, copy)
    for command in stages()["wheel"].all("RUN"):
        subprocess.run(here(command, folder), shell=True, check=True, cwd=source)
    (wheel,) = (folder / "wheels").glob("*.whl")
    return wheel
