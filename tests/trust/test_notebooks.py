"""Notebooks run from top to bottom: the ones in notebooks/, and those that the app exports."""

import ast
import io
import json
import os
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from idecode_core import load_detector, save_detector, studio
from idecode_core.audio.read import read_sound
from idecode_core.conformal.judge import judge, smoothing_generator
from idecode_core.draws import content_hash
from idecode_core.errors import SessionError
from idecode_core.report import (
    InspectedSample,
    Inspection,
    inspect_batch,
    inspection_files,
    inspection_notebook,
)
from ui.frame.samples import png

REPOSITORY = Path(__file__).parents[2]
SECONDS = 600  # the goal is two minutes on two free cores; a busy machine gets five times as long
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))


def execute(text: str, folder: Path) -> str:
    """Run a notebook in a kernel of its own; everything that it printed."""
    notebook = nbformat.reads(text, as_version=4)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in outputs)


def run_here(text: str, monkeypatch: pytest.MonkeyPatch, folder: Path = REPOSITORY) -> dict[str, object]:
    """Run a notebook's code in this process, which is quicker; the variables that it leaves."""
    monkeypatch.chdir(folder)
    scope: dict[str, object] = {}
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), scope)
    return scope


def test_no_notebook_starts_a_process() -> None:
    """Whatever a command can do, one call of the library does."""
    for path in NOTEBOOKS:
        code = [
            "".join(cell["source"])
            for cell in json.loads(path.read_text())["cells"]
            if cell["cell_type"] == "code"
        ]
        assert not [
            cell for cell in code if "subprocess" in cell or "os.system" in cell or cell.lstrip()[:1] == "!"
        ]


@pytest.fixture(scope="module")
def detector():  # type: ignore[no-untyped-def]
    return load_detector(REPOSITORY / "checkpoints" / "fashion-rotations")


def batch(detector, *, smoothed: bool = False, false_discovery_control: bool = False) -> Inspection:  # type: ignore[no-untyped-def]
    """Three pictures as the Inspect page has them: scored at n_max in company, then sliced."""
    pixels = np.random.default_rng(8).integers(0, 256, (3, 28, 28, 3), dtype=np.uint8)
    pixels[1] //= 4
    pixels[2, :14] = 0
    inputs = [
        InspectedSample(f"it's {i}.png", png(x), content_hash(x), (), None) for i, x in enumerate(pixels)
    ]  # type: ignore[arg-type]
    vectors = detector.score_vectors(pixels, n=detector.calibration.n_max, seed=4)
    verdicts = judge(
        detector.calibration,
        vectors,
        n=5,
        epsilon=0.1,
        smoothed_by=[smoothing_generator(item.content_hash, 4) for item in inputs] if smoothed else None,
        false_discovery_control=false_discovery_control,
    )
    return inspect_batch(
        detector,
        "fashion-rotations",
        inputs,
        vectors,
        verdicts,
        n=5,
        aggregate="sum",
        smoothed=smoothed,
        seed=4,
    )


@pytest.fixture(scope="module")
def one_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Notebooks open the app: all of them the same one, on sessions of their own, and it is closed in the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDECODE_SESSIONS", str(tmp_path_factory.mktemp("idecode") / "sessions"))
        yield
        studio.close()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_from_top_to_bottom(path: Path, one_app: None) -> None:
    begin = time.monotonic()
    execute(path.read_text(encoding="utf-8"), path.parent)
    assert time.monotonic() - begin < SECONDS
    assert studio.running() is not None  # it opened the app


def test_the_tour_has_eight_stops_each_with_sliders_and_the_app_once() -> None:
    assert [path.stem[3:] for path in NOTEBOOKS] == [
        "quickstart", "guarantee", "evaluate", "audio", "your_own_data", "your_own_scores", "more_guarantees", "your_own_model",
    ]  # fmt: skip
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        assert code.count("studio.open(") == 1, path.name
        assert ".explore()" in code, path.name
        assert "sys.path" not in code, path.name
        assert "localhost" not in path.read_text(encoding="utf-8"), path.name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_without_outputs_and_defines_nothing(path: Path) -> None:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
            nodes = ast.walk(ast.parse("".join(cell["source"])))
            assert not [n for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef | ast.Lambda)]


@pytest.fixture
def unpacked(detector, tmp_path):  # type: ignore[no-untyped-def]
    """A folder with nothing but a zip's content."""

    def unpack(inspection: Inspection, made_with=None) -> str:  # type: ignore[no-untyped-def]
        notebook = inspection_notebook(inspection, inspection_files(inspection, made_with or detector))
        with zipfile.ZipFile(io.BytesIO(notebook.zipped())) as archive:
            archive.extractall(tmp_path / "empty")
        return (tmp_path / "empty" / "inspection.ipynb").read_text(encoding="utf-8")

    return unpack


def test_exported_notebook_computes_the_p_values_of_the_page_again(
    detector, tmp_path: Path, unpacked
) -> None:  # type: ignore[no-untyped-def]
    inspection = batch(detector)
    printed = execute(unpacked(inspection), tmp_path / "empty")
    assert "As on the page: exactly" in printed
    for sample in inspection.samples:
        assert f"{sample.name}: p = {sample.verdict.p_value:.3g}" in printed


@pytest.mark.parametrize(("smoothed", "controlled"), [(True, False), (False, True), (True, True)])
def test_exported_notebook_knows_smoothing_and_false_discovery_control(  # type: ignore[no-untyped-def]
    detector, monkeypatch, tmp_path, unpacked, smoothed: bool, controlled: bool
) -> None:
    inspection = batch(detector, smoothed=smoothed, false_discovery_control=controlled)
    scope = run_here(unpacked(inspection), monkeypatch, tmp_path / "empty")
    assert np.array_equal(
        scope["judgement"].p_values, [sample.verdict.p_value for sample in inspection.samples]
    )  # type: ignore[arg-type]
    assert scope["judgement"].is_ood.tolist() == [sample.verdict.is_ood for sample in inspection.samples]  # type: ignore[call-overload]


def test_exported_notebook_stops_when_the_p_value_differs(detector, monkeypatch, tmp_path, unpacked) -> None:  # type: ignore[no-untyped-def]
    inspection = batch(detector)
    unpacked(inspection)
    wrong = replace(inspection.samples[0].verdict, p_value=0.9 - inspection.samples[0].verdict.p_value)
    samples = (replace(inspection.samples[0], verdict=wrong), *inspection.samples[1:])
    with pytest.raises(AssertionError):
        run_here(
            inspection_notebook(replace(inspection, samples=samples), {}).text,
            monkeypatch,
            tmp_path / "empty",
        )


def test_exported_notebook_refuses_another_calibration(detector, monkeypatch, tmp_path, unpacked) -> None:  # type: ignore[no-untyped-def]
    text = unpacked(batch(detector))
    path = tmp_path / "empty" / "session" / "session.json"
    value = json.loads(path.read_text())
    value["detector"]["calibration_sha256"] = "0" * 64
    path.write_text(json.dumps(value))
    with pytest.raises(SessionError, match="another calibration"):
        run_here(text, monkeypatch, tmp_path / "empty")


HOSTILE = (
    """'); import os; os.environ["STOLEN"] = "1" #\n# %%\nimport os {{ 7 * 7 }} {% raw %} <script>.png"""
)


def test_a_hostile_name_never_becomes_code(detector, monkeypatch, tmp_path, unpacked) -> None:  # type: ignore[no-untyped-def]
    inspection = batch(detector)
    samples = tuple(replace(sample, name=f"{i}{HOSTILE}") for i, sample in enumerate(inspection.samples))
    hostile = replace(inspection, samples=samples, detector=HOSTILE)
    text = unpacked(hostile)
    cells, plain = json.loads(text)["cells"], json.loads(inspection_notebook(inspection, {}).text)["cells"]
    code = [
        ["".join(cell["source"]) for cell in some if cell["cell_type"] == "code"] for some in (cells, plain)
    ]
    assert code[0] == code[1]  # names are in the session's JSON, not in any cell of code
    assert "<script>" not in text
    run_here(text, monkeypatch, tmp_path / "empty")
    assert "STOLEN" not in os.environ


def test_exported_notebook_of_sounds_computes_their_p_values_again(  # type: ignore[no-untyped-def]
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unpacked
) -> None:
    import soundfile
    from test_audio_scorer import make_scorer, sounds

    from idecode_core.detector import Detector

    heard = Detector.calibrate("heard", make_scorer(), sounds((1.0,) * 20, seed=1), n_max=4)
    save_detector(heard, tmp_path / "heard")
    inputs = []
    for i, sound in enumerate(sounds((1.0, 2.0))):
        file = io.BytesIO()
        soundfile.write(file, sound.samples, sound.sample_rate, format="WAV")
        decoded = read_sound(file.getvalue())
        inputs.append(
            InspectedSample(
                f"{i}.wav", file.getvalue(), content_hash(decoded.samples, decoded.sample_rate), (), None
            )
        )  # type: ignore[arg-type]
    vectors = heard.score_vectors([item.data for item in inputs], n=4, seed=2)
    verdicts = judge(heard.calibration, vectors, n=3, epsilon=0.2)
    inspection = inspect_batch(
        heard, "heard", inputs, vectors, verdicts, n=3, aggregate="sum", smoothed=False, seed=2
    )
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path))
    scope = run_here(unpacked(inspection, heard), monkeypatch, tmp_path / "empty")
    assert np.array_equal(scope["judgement"].p_values, [verdict.p_value for verdict in verdicts])  # type: ignore[arg-type]
