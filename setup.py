"""The wheel holds more than the library: the app and one small detector, which lie beside it in a checkout.

Everything else that concerns the package is in pyproject.toml.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
APP = ("app.py", "pages", "ui", "lessons", ".streamlit/config.toml")
DETECTOR = "fashion-rotations"


class BuildWithAppAndDetector(build_py):
    """An editable install finds both beside the library, so nothing is copied for it."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        package = Path(self.build_lib) / "idecode_core"
        for name in APP:
            copy(HERE / name, package / "studio" / name)
        copy(HERE / "checkpoints" / DETECTOR, package / "detectors" / DETECTOR)


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


setup(cmdclass={"build_py": BuildWithAppAndDetector})
