"""Evaluate, Guarantee and Calibrate, exported: the notebook computes again what the page showed."""

import json
from pathlib import Path

import numpy as np
import pytest
from trust_pages import make_checkpoints

from idecode_core.calibration import Calibration, aggregate_scores
from idecode_core.checkpoint import load_detector
from idecode_core.evaluation import ScoreSet, id_and_ood, read_scores, runs
from idecode_core.exchangeability import compare
from idecode_core.guarantee import study
from idecode_core.promise import Promise
from idecode_core.report import to_csv, to_html
from idecode_core.report.calibrations import calibration_notebook
from idecode_core.report.evaluations import evaluation_notebook, evaluation_report
from idecode_core.report.guarantees import guarantee_notebook
from idecode_core.side_by_side import side_by_side

REPOSITORY = Path(__file__).parent.parent
NAME = "fashion-rotations"


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoints(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def run(checkpoints: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Run a notebook's code, its own assertions included; the variables that it leaves."""
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(checkpoints))
    monkeypatch.chdir(REPOSITORY)

    def run_cells(text: str) -> dict[str, object]:
        scope: dict[str, object] = {}
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), scope)
        return scope

    return run_cells


def test_evaluate_notebook_reads_the_stored_scores_and_finds_the_same_table(checkpoints: Path, run) -> None:  # type: ignore[no-untyped-def]
    folder = checkpoints / NAME
    calibration = load_detector(folder).calibration
    id_set, ood_sets = id_and_ood(read_scores(folder))
    rows = side_by_side(calibration, id_set, ood_sets, 3, "max", "fashion", "rotations")
    values = (NAME, id_set, ood_sets, rows, 3, "max")
    notebook = evaluation_notebook(*values, str(folder), calibration, "fashion", "rotations", True)
    assert [row.auroc.values for row in run(notebook)["rows"]] == [row.auroc.values for row in rows]
    assert str(checkpoints) not in notebook
    changed = evaluation_notebook(
        NAME, id_set, ood_sets, rows, 4, "max", str(folder), calibration, "", "", True
    )
    with pytest.raises(AssertionError):
        run(changed)


@pytest.mark.parametrize("calibrated", [True, False])
def test_evaluate_notebook_holds_own_scores_bit_for_bit(calibrated: bool, run) -> None:  # type: ignore[no-untyped-def]
    generator = np.random.default_rng(4)
    id_set = ScoreSet("own-id", "your iD scores", False, generator.random((30, 6)))  # type: ignore[arg-type]
    ood_set = ScoreSet("own-ood", "your OOD scores", True, 0.2 + generator.random((20, 6)))  # type: ignore[arg-type]
    calibration = Calibration(generator.random((40, 6))) if calibrated else None
    rows = side_by_side(calibration, id_set, [ood_set], 5)
    values = ("your scores", id_set, (ood_set,), rows, 5, "sum")
    scope = run(evaluation_notebook(*values, "", calibration, "", "", False))
    assert np.array_equal(scope["id_set"].score_vectors, id_set.score_vectors)
    assert to_csv(evaluation_report(*values, {"data": []}, "")).count("\n") == len(rows) + 1


def test_evaluate_report_opens_with_the_figure_of_the_page(checkpoints: Path) -> None:
    from idecode_core.plots.evaluation import methods_side_by_side

    folder = checkpoints / NAME
    id_set, ood_sets = id_and_ood(read_scores(folder))
    rows = side_by_side(load_detector(folder).calibration, id_set, ood_sets, 5)
    report = evaluation_report(
        NAME, id_set, ood_sets, rows, 5, "sum", methods_side_by_side(rows, "auroc"), "Look."
    )
    html = to_html(report)
    assert "SVHN" in html
    assert "Look." in html


@pytest.mark.parametrize("smoothed", [False, True])
def test_guarantee_notebook_draws_the_same_calibration_sets(smoothed: bool, checkpoints: Path, run) -> None:  # type: ignore[no-untyped-def]
    folder = checkpoints / NAME
    calibration = load_detector(folder).calibration
    id_set, _ = id_and_ood(read_scores(folder))
    found = study(
        calibration.scores(5),
        aggregate_scores(runs(id_set.score_vectors, 5)[0]),
        k=200,
        epsilons=[0.05, 0.2],
        repeats=20,
        smoothed=smoothed,
        generator=np.random.default_rng(3),
    )
    promise = Promise(k=200, epsilon=0.05, delta=0.1)
    settings = {"n": 5, "aggregate": "sum", "smoothed": smoothed, "seed": 3}
    scope = run(guarantee_notebook(NAME, str(folder), calibration, promise, found, settings))  # type: ignore[arg-type]
    assert np.array_equal(scope["found"].resampled, found.resampled)


def test_calibrate_notebook_compares_the_same_files(checkpoints: Path, run) -> None:  # type: ignore[no-untyped-def]
    folder = checkpoints / NAME
    shipped = load_detector(folder).calibration
    own = Calibration(1.5 * shipped.score_vectors[:50], seed=2)
    comparison = compare(own.scores(4, "mean"), shipped.scores(4, "mean"))
    notebook = calibration_notebook(str(folder), shipped, own, comparison, 4, "mean")
    assert run(notebook)["comparison"] == comparison
