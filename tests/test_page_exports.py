"""What Evaluate, Guarantee and Calibrate let one download: each notebook runs and finds the numbers of the page."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from trust_pages import HOME, make_checkpoints

from idecode_core.conformal import FalseDetectionLaw
from idecode_core.conformal.calibration import Calibration, aggregate_scores
from idecode_core.evaluation.side_by_side import side_by_side
from idecode_core.folder.calibration import read_calibration
from idecode_core.folder.scores import ScoreSet
from idecode_core.folder.settings import read_settings
from idecode_core.folder.stored import Stored, open_stored
from idecode_core.guarantees.observed import study
from idecode_core.guarantees.same_source import compare
from idecode_core.guarantees.statement import Guarantee
from idecode_core.plots.evaluation import methods_side_by_side
from idecode_core.report import to_csv, to_html, to_json
from idecode_core.report.calibrations import calibration_notebook, calibration_report
from idecode_core.report.evaluations import Evaluated, evaluation_notebook, evaluation_report
from idecode_core.report.guarantees import guarantee_notebook, guarantee_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = make_checkpoints(tmp_path_factory.mktemp("checkpoints"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDECODE_CHECKPOINTS", str(root))
        patch.setenv("IDECODE_HOME", str(HOME))
        patch.setattr(sys, "path", list(sys.path))
        yield root / "fashion-rotations"


@pytest.fixture(scope="module")
def stored(folder) -> Stored:
    return open_stored(folder)


@pytest.fixture(scope="module")
def calibration(folder, stored) -> Calibration:
    """As it is on disk, for scores that a page has made itself."""
    return read_calibration(stored.settings)


def run(notebook: str) -> dict:
    """Every code cell from top to bottom, in one namespace."""
    space: dict = {}
    for cell in json.loads(notebook)["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)
    return space


def evaluated(stored: Stored, n: int, aggregate: str = "sum") -> Evaluated:
    rows = side_by_side(stored.calibration, stored.id_set, stored.ood_sets, n, aggregate)
    return Evaluated(stored.name, stored.id_set, stored.ood_sets, rows, n, aggregate)


def test_the_notebook_of_stored_scores_finds_the_page_s_table(folder, stored):
    shown = evaluated(stored, 4, "max")
    space = run(
        evaluation_notebook(shown, str(folder), stored.calibration, "fashion", "rotations", stored=True)
    )
    assert [row.tnr.values for row in space["rows"]] == [row.tnr.values for row in shown.rows]


def test_a_notebook_of_stored_scores_needs_no_network(folder, stored, tmp_path):
    notebook = evaluation_notebook(evaluated(stored, 2), str(folder), stored.calibration, "", "", stored=True)
    cells = [cell["source"] for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]
    script = "\n\n".join("".join(cell) for cell in cells)
    printed = subprocess.run(
        [sys.executable, "-c", f"{script}\n\nprint('torch' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    assert printed.splitlines()[-2:] == ["As on the page.", "False"]


def test_a_notebook_stops_when_a_number_differs(folder, stored):
    shown = replace(evaluated(stored, 4), n=3)
    with pytest.raises(AssertionError):
        run(evaluation_notebook(shown, str(folder), stored.calibration, "fashion", "rotations", stored=True))


def test_a_notebook_refuses_another_calibration(folder, stored):
    other = Calibration(stored.calibration.score_vectors[::-1])
    with pytest.raises(AssertionError, match="another calibration"):
        run(evaluation_notebook(evaluated(stored, 4), str(folder), other, "", "", stored=True))


@pytest.mark.parametrize("with_calibration", [False, True])
def test_the_notebook_of_own_scores_holds_them_bit_for_bit(folder, with_calibration):
    generator = np.random.default_rng(0)
    known = ScoreSet("own-id", "your iD scores", False, generator.random((40, 3)))
    strange = ScoreSet("own-ood", "your OOD scores", True, generator.random((30, 3)) + 0.2)
    own = Calibration(generator.random((25, 3))) if with_calibration else None
    rows = side_by_side(own, known, [strange], 3)
    shown = Evaluated("your scores", known, [strange], rows, 3, "sum")
    space = run(evaluation_notebook(shown, "", own, "", "", stored=False))
    np.testing.assert_array_equal(space["id_set"].score_vectors, known.score_vectors)


def test_the_notebook_of_own_files_takes_the_detector_s_calibration(folder, calibration):
    generator = np.random.default_rng(1)
    known = ScoreSet("own-id", "your iD files", False, generator.random((10, 20)))
    strange = ScoreSet("own-ood", "your OOD files", True, generator.random((10, 20)))
    rows = side_by_side(calibration, known, [strange], 5)
    shown = Evaluated("mine", known, [strange], rows, 5, "sum")
    space = run(evaluation_notebook(shown, str(folder), calibration, "", "", stored=False))
    np.testing.assert_array_equal(space["calibration"].score_vectors, calibration.score_vectors)


def a_study(stored: Stored):
    return study(
        stored.calibration.scores(5),
        aggregate_scores(stored.id_set.score_vectors[:, :5].astype(float)),
        k=100,
        epsilons=[0.05, 0.1],
        repeats=8,
        smoothed=True,
        generator=np.random.default_rng(7),
    )


def test_the_guarantee_s_notebook_draws_the_same_calibration_sets(folder, stored, calibration):
    settings = {"n": 5, "aggregate": "sum", "smoothed": True, "seed": 7}
    found, guarantee = a_study(stored), Guarantee(100, 0.05)
    space = run(guarantee_notebook(stored.name, str(folder), stored.calibration, guarantee, found, settings))
    np.testing.assert_array_equal(space["found"].resampled, found.resampled)
    assert space["guarantee"] == guarantee
    run(guarantee_notebook("bare", str(folder.parent / "bare"), bare(folder), guarantee, None, settings))


def bare(folder) -> Calibration:
    """The calibration of a detector without stored scores."""
    return read_calibration(read_settings(folder.parent / "bare"))


def test_the_calibration_s_notebook_finds_the_same_comparison(folder, calibration):
    own = Calibration(np.random.default_rng(2).random((30, 20)), seed=4)
    comparison = compare(own.scores(5), calibration.scores(5))
    space = run(calibration_notebook(str(folder), calibration, own, comparison, 5, "sum"))
    assert space["comparison"] == comparison


def test_reports_hold_the_numbers_in_each_format(stored):
    shown = evaluated(stored, 4)
    rows, figure = shown.rows, methods_side_by_side(shown.rows, "auroc")
    report = evaluation_report(shown, figure, "Look here.")
    assert str(rows[0].auroc.mean) in to_csv(report)
    assert len(to_csv(report).strip().splitlines()) == len(rows) + 1
    assert json.loads(to_json(report))["rows"][2]["auroc"] == rows[2].auroc.mean
    assert "Look here." in to_html(report)

    found = a_study(stored)
    guarantee = guarantee_report("f", Guarantee(100, 0.05), found, {"n": 5}, [(figure, "c")])
    line = guarantee.rows[1]
    assert line["mean_rate_by_the_law"] == FalseDetectionLaw(100, 0.1).mean
    assert line["observed_rate"] == found.observed[1].rate
    assert "at most 0.05" in to_html(guarantee)

    comparison = compare([1.0, 2.0, 3.0], [2.0, 4.0])
    files = calibration_report(
        "f", comparison, ["a", "b", "c"], [1.0, 2.0, 3.0], [0.1, 0.2, 0.3], {}, figure, "c"
    )
    assert [row["name"] for row in files.rows] == ["a", "b", "c"]
