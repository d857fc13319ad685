"""What programs rely on: --json and --csv, exit statuses, ten commands in --help, and a library call for each."""

import csv
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from PIL import Image
from small import random_images, small_scorer

from idecode_core.cli import app as commands
from idecode_core.cli.app import main
from idecode_core.conformal.certify import certify
from idecode_core.detector import Detector
from idecode_core.files.names import csv_text
from idecode_core.folder.detector import save_detector
from idecode_core.image.fetch import list_sets

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "commands.md").read_text()
ROW = re.compile(r"^\| `([a-z ]+)` \| [^|]+ \| `([\w.]+)` \| ([^|]*)\|$", re.MULTILINE)
TABLE = {name: (call, given) for name, call, given in ROW.findall(PAGE)}


def registered() -> dict[str, set[str]]:
    """Command -> its options, of all that can be called."""
    found: dict[str, set[str]] = {}

    def walk(group, above: str) -> None:  # type: ignore[no-untyped-def]
        for name, one in group.commands.items():
            if hasattr(one, "commands"):
                walk(one, f"{above}{name} ")
            else:
                found[above + name] = {option for parameter in one.params for option in parameter.opts}

    walk(typer.main.get_command(commands.app), "")
    return found


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command in an empty directory: (exit status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IDECODE_DATA", raising=False)
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path))

    def command(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return int(ended.value.code or 0), *capsys.readouterr()

    return command


@pytest.fixture
def photos(tmp_path) -> Path:
    """A small detector called mine, and a folder of pictures."""
    save_detector(Detector.calibrate("mine", small_scorer(), random_images(30), n_max=2), tmp_path / "mine")
    (tmp_path / "photos").mkdir()
    for i, image in enumerate(random_images(4, seed=3)):
        Image.fromarray(image).save(tmp_path / "photos" / f"{i}.png")
    return tmp_path / "photos"


def test_the_page_lists_every_command_with_its_options_and_a_call_that_is_there() -> None:
    found = registered()
    assert {*TABLE} == {*found} - {"reproduce"}  # a short name of `paper reproduce`
    for name, (call, given) in TABLE.items():
        assert {option for option in ("--json", "--csv") if option in given} == found[name] & {
            "--json",
            "--csv",
        }
        if name != "paper":
            thing, module = call.rpartition(".")[2], call.rpartition(".")[0]
            home = (
                import_module(module)
                if module.islower()
                else getattr(import_module(module.rpartition(".")[0]), module.rpartition(".")[2])
            )
            assert callable(getattr(home, thing))
    without = {name for name, options in found.items() if "--json" not in options}
    assert without <= {"serve", "mcp", "app", "paper", "reproduce"}  # they answer otherwise, or not at all
    assert without == {name for name, options in found.items() if "--csv" not in options}


def test_every_call_is_used_by_a_test_and_those_for_own_files_by_notebook_05() -> None:
    tests = "".join(path.read_text() for path in (REPOSITORY / "tests").rglob("*.py"))
    cells = json.loads((REPOSITORY / "notebooks" / "05_your_own_data.ipynb").read_text())["cells"]
    notebook = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    for name, (call, _) in TABLE.items():
        if name == "paper":
            continue
        thing = re.compile(r"\bstudio\.open\(" if name == "app" else rf"\b{call.rpartition('.')[2]}\(")
        assert thing.search(tests), f"{call} is used by no test"
        if name in ("detect", "calibrate", "evaluate", "certify", "score", "judge", "merge"):
            assert thing.search(notebook), f"notebook 05 does not use {call}"
    assert "plan.train(" in notebook


def test_help_shows_the_ten_that_a_user_needs_names_the_others_and_the_statuses(run) -> None:
    _, out, _ = run("--help")
    shown = re.findall(r"^  ([a-z]+)  ", out.split("Commands:")[1].split("Start with")[0], re.MULTILINE)
    assert len(shown) == 10
    more = re.findall(r"[a-z]+", out.split("of its own:")[1].split(".")[0])
    assert {*shown, *more} == {name.split()[0] for name in registered()} - {"reproduce"}
    statuses = re.findall(r"^\| (\d+) \| (.{4})", PAGE, re.MULTILINE)
    assert [int(status) for status, _ in statuses] == [0, 1, 2, 130, 141, 143]
    for status in re.findall(r"^    (\d+) ", out, re.MULTILINE):
        assert status in dict(statuses)


def test_json_and_csv_together_are_refused(run) -> None:
    status, out, err = run("evaluate", "--json", "--csv")
    assert (status, out) == (2, "")
    assert "got both" in err


def test_results_come_as_json(run, photos, tmp_path) -> None:
    status, out, _ = run(
        "score", "photos", "--out", "scores", "-d", "mine", "--n", 2, "--workers", 1, "--json"
    )
    told = json.loads(out)
    assert status == 0
    assert (told["files"], told["now"], told["failures"], told["folder"]) == (4, 4, 0, "scores")
    flagged = pq.read_table(tmp_path / "scores")["is_ood"].to_pylist()
    assert told["flagged"] == sum(flagged)
    _, rows, _ = run("judge", "scores", "--csv")
    assert rows == run("judge", "scores")[1]
    assert run("judge", "scores", "--csv", "--out", "v.csv")[0] == 2
    status, out, _ = run("export", "--onnx", "-d", "mine", "--out", "onnx", "--json")
    assert status == 0
    assert json.loads(out) == {"folder": "onnx", "detector": "mine", "k": 30, "n_max": 2}
    _, out, _ = run("score", "photos", "--out", "scores", "-d", "mine", "--n", 2, "--workers", 1, "--csv")
    (row,) = csv.DictReader(out.splitlines())
    assert (row["files"], row["now"], row["folder"]) == ("4", "0", "scores")
    (tmp_path / "strange").mkdir()
    Image.fromarray(random_images(1, seed=4)[0]).save(tmp_path / "strange" / "one.png")
    _, out, _ = run(
        "calibrate", "photos", "-d", "mine", "--n-max", 2, "--out", "new", "--ood", "strange", "--csv"
    )
    (row,) = csv.DictReader(out.splitlines())
    assert (row["k"], row["label"], row["total"]) == ("4", "strange", "1")


def test_datasets_and_the_registry_come_as_rows(run, tmp_path, monkeypatch) -> None:
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "cifar10-test.npz", x=random_images(3), y=np.arange(3))
    (tmp_path / "data" / "svhn-test.npz").write_bytes(b"cut off")
    _, out, _ = run("data", "check", "--json")
    states = {row["name"]: (row["state"], row["points"]) for row in map(json.loads, out.splitlines())}
    assert states["cifar10-test"] == ("ready", 3)
    assert states["svhn-test"] == ("damaged", None)
    assert states["cifar100-test"] == ("missing", None)
    assert [vars(one)["name"] for one in list_sets(Path("data"))] == [*states]
    _, out, _ = run("data", "check", "--csv")
    assert {row["name"]: row["state"] for row in csv.DictReader(out.splitlines())} == {
        name: state for name, (state, _) in states.items()
    }
    (tmp_path / "registry.json").write_text('{"=mine": {"source": "https://example.org/mine.zip"}}')
    monkeypatch.setenv("IDECODE_REGISTRY", str(tmp_path / "registry.json"))
    assert json.loads(run("pull", "--list", "--json")[1]) == {
        "detector": "=mine",
        "source": "https://example.org/mine.zip",
        "sha256": "",
    }
    assert run("pull", "--list", "--csv")[1].splitlines()[1] == "'=mine,https://example.org/mine.zip,"


def test_a_list_in_a_row_is_json_in_its_cell() -> None:
    (row,) = csv.DictReader(csv_text([{"members": ["=a", "b"], "parts": {"k": 3}}]).splitlines())
    assert {name: json.loads(cell) for name, cell in row.items()} == {
        "members": ["=a", "b"],
        "parts": {"k": 3},
    }


def test_the_registry_is_listed_without_torch() -> None:
    program = "import sys; import idecode_core.folder.pull; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_certify_keeps_every_column_whatever_its_title_and_type(run, tmp_path) -> None:
    normal = np.random.default_rng(0).normal(size=99)
    np.savetxt(tmp_path / "normal.csv", normal)
    when = np.array(["2026-01-02"], "datetime64[s]")
    table = {"score": [9.5], "k": ["mine"], "at": when, "gap": [float("nan")]}
    pq.write_table(pa.table(table), tmp_path / "new.parquet")
    status, out, _ = run("certify", "normal.csv", "--test", "new.parquet", "--json")
    told = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert status == 1
    assert (told["score"], told["k_before"], told["at"], told["gap"]) == (
        9.5,
        "mine",
        "2026-01-02 00:00:00",
        None,
    )
    assert (told["k"], told["p_value"], told["threshold"]) == (99, 0.01, certify(normal).threshold(0.05))
    (tmp_path / "twice.csv").write_text("score,note,note\n0,first,second\n")
    status, out, _ = run("certify", "normal.csv", "--test", "twice.csv", "--csv")
    (row,) = csv.DictReader(out.splitlines())
    assert (status, row["note"], row["note (column 3)"], row["is_ood"]) == (0, "first", "second", "False")


def test_too_few_files_are_told_before_the_work_to_programs_too(run, monkeypatch) -> None:
    class Few:
        too_few = "Too few files: it never flags anything."

        def train(self, report):  # type: ignore[no-untyped-def]
            raise KeyboardInterrupt

    monkeypatch.setattr("idecode_core.training.train_folder.plan_folder", lambda *a, **k: Few())
    Path("few").mkdir()
    status, out, err = run("train", "few", "--json")
    assert (status, out) == (130, "")
    assert "idecode: Too few files" in err
    assert "idecode: Stopped. The same command goes on" in err


def test_a_reader_that_leaves_is_no_verdict(tmp_path) -> None:
    """`idecode certify ... --json | head -1`: status 1 would say that something is flagged."""
    np.savetxt(tmp_path / "normal.csv", np.arange(100.0))
    np.savetxt(tmp_path / "new.csv", np.zeros(20_000), header="score", comments="")
    words = ["-m", "idecode_core", "certify", "normal.csv", "--test", "new.csv", "--json"]
    with subprocess.Popen(
        [sys.executable, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert json.loads(child.stdout.readline())["is_ood"] is False
        child.stdout.close()
        said = child.stderr.read()
        assert child.wait(60) == 141
    assert "Traceback" not in said
    assert "BrokenPipe" not in said
