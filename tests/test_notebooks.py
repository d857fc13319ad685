"""Notebooks run from top to bottom: the ones in notebooks/, and those that the app exports."""

import ast
import io
import json
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from idecode_core import load_detector, save_detector
from idecode_core.audio.read import read_sound
from idecode_core.conformal.judge import judge, smoothing_generator
from idecode_core.draws import content_hash
from idecode_core.report import (
    InspectedSample,
    Inspection,
    Seed,
    Step,
    inspect_batch,
    inspection_notebook,
    steps_notebook,
)
from ui.frame.samples import png

REPOSITORY = Path(__file__).parent.parent
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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_from_top_to_bottom(path: Path) -> None:
    execute(path.read_text(encoding="utf-8"), path.parent)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_without_outputs_and_defines_nothing(path: Path) -> None:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
            nodes = ast.walk(ast.parse("".join(cell["source"])))
            assert not [n for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef | ast.Lambda)]


def test_exported_notebook_computes_the_p_values_of_the_page_again(
    detector, tmp_path: Path, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    inspection = batch(detector)
    monkeypatch.setenv("IDECODE_HOME", str(REPOSITORY))  # a download lies anywhere
    printed = execute(inspection_notebook(inspection), tmp_path)
    assert "As on the page: exactly" in printed
    for sample in inspection.samples:
        assert f"{sample.name}: p = {sample.verdict.p_value:.3g}" in printed


@pytest.mark.parametrize(("smoothed", "controlled"), [(True, False), (False, True), (True, True)])
def test_exported_notebook_knows_smoothing_and_false_discovery_control(  # type: ignore[no-untyped-def]
    detector, monkeypatch, smoothed: bool, controlled: bool
) -> None:
    inspection = batch(detector, smoothed=smoothed, false_discovery_control=controlled)
    scope = run_here(inspection_notebook(inspection), monkeypatch)
    assert np.array_equal(
        scope["judgement"].p_values, [sample.verdict.p_value for sample in inspection.samples]
    )  # type: ignore[arg-type]
    assert scope["judgement"].is_ood.tolist() == [sample.verdict.is_ood for sample in inspection.samples]  # type: ignore[call-overload]


def test_exported_notebook_stops_when_the_p_value_differs(detector, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    text = inspection_notebook(batch(detector))
    wrong = text.replace("seed = 5, 0.1, 'sum', 4", "seed = 5, 0.1, 'sum', 5")
    assert wrong != text
    with pytest.raises(AssertionError):
        run_here(wrong, monkeypatch)


def test_exported_notebook_refuses_another_calibration(detector, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    inspection = batch(detector)
    text = inspection_notebook(inspection).replace(inspection.calibration_sha256, "0" * 64)
    with pytest.raises(AssertionError, match="another calibration"):
        run_here(text, monkeypatch)


def test_exported_notebook_reads_a_batch_that_is_too_large_from_files_beside_it(  # type: ignore[no-untyped-def]
    detector, tmp_path: Path, monkeypatch
) -> None:
    inspection = batch(detector)
    for sample in inspection.samples:
        (tmp_path / sample.name).write_bytes(sample.data)
    monkeypatch.setattr("idecode_core.report.inspection.EMBED_LIMIT", len(inspection.samples[0].data))
    monkeypatch.setenv("IDECODE_HOME", str(REPOSITORY))
    scope = run_here(inspection_notebook(inspection), monkeypatch, tmp_path)
    assert [text is None for _, _, text in scope["files"]] == [False, True, True]  # type: ignore[attr-defined]
    assert np.array_equal(
        scope["judgement"].p_values, [sample.verdict.p_value for sample in inspection.samples]
    )  # type: ignore[arg-type]


def test_exported_notebook_of_sounds_computes_their_p_values_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import soundfile
    from test_audio_scoring import make_scorer, sounds

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
    scope = run_here(inspection_notebook(inspection), monkeypatch)
    assert np.array_equal(scope["judgement"].p_values, [verdict.p_value for verdict in verdicts])  # type: ignore[arg-type]


def test_exported_notebook_says_where_to_find_the_library_when_it_is_not_there(
    tmp_path: Path, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("IDECODE_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="IDECODE_HOME"):
        run_here(steps_notebook("a", "b", [], {}), monkeypatch)


def test_exported_simulation_runs_again_with_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    from idecode_core.simulate import break_it

    arguments = {"switch": "naive_fisher", "generator": Seed(7), "k": 100, "repeats": 20}
    shown = break_it("naive_fisher", generator=np.random.default_rng(7), k=100, repeats=20)
    rate = "comparison.broken.mean_false_detection_rate(0.05)"
    steps = [Step("comparison", break_it, arguments)]
    text = steps_notebook("Naive Fisher", "Why.", steps, {rate: shown.broken.mean_false_detection_rate(0.05)})
    scope = run_here(text, monkeypatch)
    assert np.array_equal(scope["comparison"].broken.p_values, shown.broken.p_values)  # type: ignore[attr-defined]
