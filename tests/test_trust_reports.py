"""What Evaluate, Guarantee and Calibrate let one download: each notebook runs and finds the numbers of the page."""

import json
import sys

import numpy as np
import pytest
from trust_pages import HOME, make_checkpoints

from idecode_core.calibration import Calibration, aggregate_scores
from idecode_core.checkpoint import load_detector
from idecode_core.conformal import FalseDetectionLaw
from idecode_core.evaluation import ScoreSet, id_and_ood, read_scores
from idecode_core.exchangeability import compare
from idecode_core.guarantee import study
from idecode_core.plots.evaluation import methods_side_by_side
from idecode_core.promise import Promise
from idecode_core.report import to_csv, to_html, to_json
from idecode_core.report.calibrations import calibration_notebook, calibration_report
from idecode_core.report.evaluations import evaluation_notebook, evaluation_report
from idecode_core.report.guarantees import guarantee_notebook, guarantee_report
from idecode_core.side_by_side import side_by_side


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = make_checkpoints(tmp_path_factory.mktemp("checkpoints"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDECODE_CHECKPOINTS", str(root))
        patch.setenv("IDECODE_HOME", str(HOME))
        patch.setattr(sys, "path", list(sys.path))
        yield root / "fashion-rotations"


@pytest.fixture(scope="module")
def calibration(folder):
    return load_detector(folder).calibration


def run(notebook: str) -> dict:
    """Every code cell from top to bottom, in one namespace."""
    space: dict = {}
    for cell in json.loads(notebook)["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)
    return space


def test_the_notebook_of_stored_scores_finds_the_page_s_table(folder, calibration):
    known, strange = id_and_ood(read_scores(folder))
    rows = side_by_side(calibration, known, strange, 4, "max")
    values = ("fashion-rotations", known, strange, rows, 4, "max")
    space = run(evaluation_notebook(*values, str(folder), calibration, "fashion", "rotations", True))
    assert [row.tnr.values for row in space["rows"]] == [row.tnr.values for row in rows]


def test_a_notebook_stops_when_a_number_differs(folder, calibration):
    known, strange = id_and_ood(read_scores(folder))
    rows = side_by_side(calibration, known, strange, 4)
    wrong = evaluation_notebook(
        "x", known, strange, rows, 3, "sum", str(folder), calibration, "fashion", "rotations", True
    )
    with pytest.raises(AssertionError):
        run(wrong)


@pytest.mark.parametrize("with_calibration", [False, True])
def test_the_notebook_of_own_scores_holds_them_bit_for_bit(folder, with_calibration):
    generator = np.random.default_rng(0)
    known = ScoreSet("own-id", "your iD scores", False, generator.random((40, 3)))
    strange = ScoreSet("own-ood", "your OOD scores", True, generator.random((30, 3)) + 0.2)
    own = Calibration(generator.random((25, 3))) if with_calibration else None
    rows = side_by_side(own, known, [strange], 3)
    space = run(evaluation_notebook("your scores", known, [strange], rows, 3, "sum", "", own, "", "", False))
    np.testing.assert_array_equal(space["id_set"].score_vectors, known.score_vectors)


def test_the_notebook_of_own_files_takes_the_detector_s_calibration(folder, calibration):
    generator = np.random.default_rng(1)
    known = ScoreSet("own-id", "your iD files", False, generator.random((10, 20)))
    strange = ScoreSet("own-ood", "your OOD files", True, generator.random((10, 20)))
    rows = side_by_side(calibration, known, [strange], 5)
    run(
        evaluation_notebook("mine", known, [strange], rows, 5, "sum", str(folder), calibration, "", "", False)
    )


def a_study(folder, calibration):
    known, _ = id_and_ood(read_scores(folder))
    return study(
        calibration.scores(5),
        aggregate_scores(known.score_vectors[:, :5].astype(float)),
        k=100,
        epsilons=[0.05, 0.1],
        repeats=8,
        smoothed=True,
        generator=np.random.default_rng(7),
    )


def test_the_guarantee_s_notebook_draws_the_same_calibration_sets(folder, calibration):
    settings = {"n": 5, "aggregate": "sum", "smoothed": True, "seed": 7}
    found = a_study(folder, calibration)
    space = run(
        guarantee_notebook("fashion-rotations", str(folder), calibration, Promise(100, 0.05), found, settings)
    )
    np.testing.assert_array_equal(space["found"].resampled, found.resampled)
    run(guarantee_notebook("fashion-rotations", str(folder), calibration, Promise(100, 0.05), None, settings))


def test_the_calibration_s_notebook_finds_the_same_comparison(folder, calibration):
    own = Calibration(np.random.default_rng(2).random((30, 20)), seed=4)
    comparison = compare(own.scores(5), calibration.scores(5))
    space = run(calibration_notebook(str(folder), calibration, own, comparison, 5, "sum"))
    assert space["comparison"] == comparison


def test_reports_hold_the_numbers_in_each_format(folder, calibration):
    known, strange = id_and_ood(read_scores(folder))
    rows = side_by_side(calibration, known, strange, 4)
    figure = methods_side_by_side(rows, "auroc")
    report = evaluation_report("fashion-rotations", known, strange, rows, 4, "sum", figure, "Look here.")
    assert str(rows[0].auroc.mean) in to_csv(report)
    assert len(to_csv(report).strip().splitlines()) == len(rows) + 1
    assert json.loads(to_json(report))["rows"][2]["auroc"] == rows[2].auroc.mean
    assert "Look here." in to_html(report)

    found = a_study(folder, calibration)
    guarantee = guarantee_report("f", Promise(100, 0.05), found, {"n": 5}, figure, "c")
    line = guarantee.rows[1]
    assert line["mean_rate_by_the_law"] == FalseDetectionLaw(100, 0.1).mean
    assert line["observed_rate"] == found.observed[1].rate
    assert "at most 0.05" in to_html(guarantee)

    comparison = compare([1.0, 2.0, 3.0], [2.0, 4.0])
    files = calibration_report(
        "f", comparison, ["a", "b", "c"], [1.0, 2.0, 3.0], [0.1, 0.2, 0.3], {}, figure, "c"
    )
    assert [row["name"] for row in files.rows] == ["a", "b", "c"]


@pytest.mark.parametrize(("k", "epsilon"), [(1000, 0.05), (75, 0.01), (20, 0.05)])
def test_the_promise_says_when_nothing_can_be_flagged(k, epsilon):
    promise = Promise(k, epsilon)
    can = FalseDetectionLaw(k, epsilon).J > 0
    assert ("nothing can ever be flagged" in promise.statement()) is not can
    assert (promise.corrected is None) == (k < promise.k_needed_when_sure)
    if promise.corrected is None:
        assert f"k = {promise.k_needed_when_sure:,}" in promise.correction()
    else:
        # By the law: with the corrected epsilon at least nine in ten calibration sets stay at or below epsilon.
        assert FalseDetectionLaw(k, promise.corrected).quantile(0.9) <= epsilon
