"""The package: a wheel that works away from the checkout, few dependencies, a lock file, a container."""

import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest
from dockerfile import ROOT, build_wheel, here, stages
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from PIL import Image
from sklearn.datasets import load_sample_image

from idecode_core import __version__
from idecode_core.image.sets import load_images

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
OPTIONAL = (
    "streamlit", "plotly", "soundfile", "soxr", "torchaudio", "torchvision", "jinja2", "nbformat", "ray", "fastapi",
    "uvicorn", "prometheus_client", "onnx", "onnxruntime", "timm", "pandas",
)  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("container"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """An empty environment with the wheel; what it depends on is looked up in the present environment."""
    folder = tmp_path_factory.mktemp("away")
    venv.create(folder / "env", with_pip=False)
    (libraries,) = (folder / "env").glob("lib/python*/site-packages")
    # A path in a .pth file is only a path: the editable install over there is not switched on by it.
    (libraries / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = str(folder / "env" / "bin" / "python")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            str(wheel),
        ],
        check=True,
    )
    clothing = load_images("fashion-sample")
    Image.fromarray(clothing.x[np.flatnonzero(clothing.y == 7)[0]]).save(folder / "sneaker.png")
    Image.fromarray(load_sample_image("china.jpg")).save(folder / "street.jpg")
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder / "home"),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "200",
    }
    return subprocess.run(
        [str(folder / "env" / "bin" / command[0]), *command[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_detects_away_from_the_checkout(installed):
    where = run(installed, "python", "-c", "import idecode_core; print(idecode_core.__file__)")
    assert where.stdout.startswith(str(installed / "env"))
    assert run(installed, "idecode", "--version").stdout == f"idecode {__version__}\n"
    found = run(installed, "idecode", "detect", "sneaker.png", "street.jpg")
    lines = {line.split()[-1]: line for line in found.stdout.splitlines() if line.endswith("g")}
    assert "not flagged" in lines["sneaker.png"]
    assert "out of distribution" in lines["street.jpg"]
    assert (found.returncode, found.stderr) == (1, "")


def test_the_core_works_without_any_extra(installed):
    blocked = (
        f"import sys\nfor name in {OPTIONAL!r}: sys.modules[name] = None\n"
        "from idecode_core.cli.app import main\n"
        "import idecode_core\nassert all(getattr(idecode_core, name) is not None for name in "
        "('p_values', 'Calibration', 'auroc', 'load_detector', 'ImageScorer'))\n"
    )
    found = run(installed, "python", "-c", blocked + "main(['detect', 'street.jpg'])")
    assert (found.returncode, found.stderr) == (1, "")


@pytest.mark.parametrize(
    ("module", "command", "extra"), [("uvicorn", ["serve"], "serve"), ("onnxscript", [], "onnx")]
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    module, command, extra, monkeypatch, capsys
):
    from idecode_core.cli import app

    monkeypatch.setitem(sys.modules, module, None)
    if not command:
        monkeypatch.setattr(app, "app", lambda args: __import__(module))
    with pytest.raises(SystemExit) as ended:
        app.main(command)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert f'{module} is not installed, and this needs it: pip install "idecode-studio[{extra}]"' in err
    assert "Traceback" not in err


def test_the_installed_app_starts(installed):
    script = (
        "from pathlib import Path\nimport idecode_core\nfrom streamlit.testing.v1 import AppTest\n"
        "path = Path(idecode_core.__file__).parent / 'studio' / 'app.py'\n"
        "page = AppTest.from_file(path, default_timeout=120).run()\n"
        "assert not page.exception, page.exception\nprint([title.value for title in page.title])"
    )
    found = run(installed, "python", "-c", "import sys, pathlib, idecode_core\n"
        "sys.path.insert(0, str(pathlib.Path(idecode_core.__file__).parent / 'studio'))\n" + script)  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert "iDECODe" in found.stdout


def test_the_wheel_holds_one_detector_the_app_and_types(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {
        "idecode_core/py.typed",
        "idecode_core/studio/app.py",
        "idecode_core/studio/.streamlit/config.toml",
    } <= set(names)
    detectors = {name.split("/")[2] for name in names if name.startswith("idecode_core/detectors/")}
    assert detectors == {"fashion-rotations"}
    assert not [
        name for name in names if name.startswith(("ui/", "pages/", "tests/", "research/")) or ".pyc" in name
    ]
    assert wheel.stat().st_size < 20 * 2**20


def pins(name: str) -> dict[str, tuple[str, int]]:
    """Package -> (version, number of hashes) of a lock file."""
    found = {}
    for block in re.split(r"\n(?=\S)", (ROOT / name).read_text()):
        if match := re.match(r"([\w.-]+)==([^ ;\\]+)", block):
            found[canonicalize_name(match[1])] = (match[2], block.count("--hash=sha256:"))
    return found


def test_every_dependency_is_pinned_inside_its_range_with_hashes():
    locked, locked_dev = pins("requirements.txt"), pins("requirements-dev.txt")
    assert all(hashes for _, hashes in (*locked.values(), *locked_dev.values()))
    assert locked.items() <= locked_dev.items()  # `make test` and `make app` run the same versions
    tools = [line for line in (ROOT / "requirements-dev.in").read_text().splitlines() if line[:1].isalpha()]
    for text in (*PROJECT["dependencies"], *(text for extra in EXTRAS.values() for text in extra), *tools):
        wanted = Requirement(text.partition("#")[0].strip())
        if wanted.name == PROJECT["name"]:
            continue
        assert wanted.specifier.contains(locked_dev[canonicalize_name(wanted.name)][0]), text
        assert not any(part.operator == "==" for part in wanted.specifier), (
            f"{text}: a range is expected here"
        )
    app = [*PROJECT["dependencies"], *EXTRAS["app"], *EXTRAS["audio"], *EXTRAS["report"], *EXTRAS["train"]]
    assert {canonicalize_name(Requirement(text).name) for text in app} - {PROJECT["name"]} <= set(locked)


def test_every_dependency_has_a_reason_and_a_licence():
    text = (ROOT / "pyproject.toml").read_text() + (ROOT / "requirements-dev.in").read_text()
    tools = re.findall(r"^([\w-]+)>=.*$", (ROOT / "requirements-dev.in").read_text(), re.M)
    for name in [
        Requirement(item).name
        for item in (*PROJECT["dependencies"], *(x for e in EXTRAS.values() for x in e))
    ] + tools:
        if name != PROJECT["name"]:
            assert re.search(rf'"?{re.escape(name)}(\[\w+\])?>=[^#\n]*# [\w.+ -]+: \S', text), name


def test_the_containers_steps_fit_this_package(wheel):
    """Where no container engine is at hand: what can be done of it in an empty folder."""
    folder = wheel.parent.parent
    pinned = (wheel.parent / "pins.txt").read_text().split()
    assert f"torch=={pins('requirements.txt')['torch'][0]}" in pinned
    for name in ("service", "app"):
        stage = stages()[name]
        (install,) = stage.all("RUN")
        dry = here(install, folder).replace(
            " install ", " install --quiet --dry-run --no-deps --no-index --force-reinstall "
        )
        done = subprocess.run(dry, shell=True, capture_output=True, text=True, cwd=folder, check=False)
        assert (done.returncode, "does not provide" in done.stderr) == (0, False), done.stderr
        assert stage.all("USER") == ["idecode"]
        (port,) = stage.all("EXPOSE")
        assert f":{port}/" in stage.all("HEALTHCHECK")[0]
        assert port in stage.all("CMD")[0]
    copied = [name for stage in stages().values() for rest in stage.all("COPY") for name in rest.split()[:-1]]
    assert all((ROOT / name).exists() for name in copied if not name.startswith(("--from", "/")))
