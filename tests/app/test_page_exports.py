"""What Evaluate, Guarantee and Calibrate let one download: each notebook runs and finds the numbers of the page."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from trust_pages import make_checkpoints

import idecode_core.report
from idecode_core import certify
from idecode_core.conformal import FalseDetectionLaw
from idecode_core.conformal.calibration import Calibration, aggregate_scores
from idecode_core.conformal.observed import study
from idecode_core.conformal.same_source import compare
from idecode_core.conformal.statement import Guarantee
from idecode_core.folder.manifest import read_calibration
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import ScoreSet
from idecode_core.folder.stored import Stored, open_stored
from idecode_core.plots.evaluation import methods_side_by_side
from idecode_core.quality.methods import evaluate
from idecode_core.quality.side_by_side import side_by_side
from idecode_core.quality.user_data import Lost
from idecode_core.report import Notebook, to_csv, to_html, to_json
from idecode_core.report.calibrations import calibration_report
from idecode_core.report.evaluations import EvaluationShown, evaluation_notebook, evaluation_report
from idecode_core.report.guarantees import certified_export, guarantee_notebook, guarantee_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = make_checkpoints(tmp_path_factory.mktemp("checkpoints"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDECODE_CHECKPOINTS", str(root))
        patch.setattr(sys, "path", list(sys.path))
        yield root / "fashion-rotations"


@pytest.fixture(scope="module")
def stored(folder) -> Stored:
    return open_stored(folder)


@pytest.fixture(scope="module")
def calibration(folder, stored) -> Calibration:
    """As it is on disk, for scores that a page has made itself."""
    return read_calibration(stored.settings)


@pytest.fixture
def run(tmp_path, monkeypatch, folder):
    """Every code cell from top to bottom, in one namespace, in a folder with nothing but the notebook and its files."""

    def run(notebook: Notebook) -> dict:
        notebook.write_into(tmp_path)
        monkeypatch.chdir(tmp_path)
        space: dict = {}
        for cell in json.loads(notebook.text)["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), space)
        return space

    return run


def evaluated(stored: Stored, n: int, aggregate: str = "sum") -> EvaluationShown:
    rows = side_by_side(stored.calibration, stored.id_set, stored.ood_sets, n, aggregate)
    return EvaluationShown(stored.name, stored.id_set, stored.ood_sets, rows, n, aggregate)


def test_the_notebook_of_stored_scores_finds_the_page_s_table(run, folder, stored):
    shown = evaluated(stored, 4, "max")
    space = run(evaluation_notebook(shown, str(folder), stored.calibration, stored=True))
    assert [row.tnr.values for row in space["rows"]] == [row.tnr.values for row in shown.rows]
    for n, found in zip(space["ns"], space["by_n"], strict=True):  # more transforms
        again = [
            evaluate(stored.calibration, stored.id_set, one, n, "max").auroc.mean for one in stored.ood_sets
        ]
        assert [one.auroc.mean for one in found] == again
    assert max(space["ns"]) == min(20, stored.calibration.n_max)


def test_a_notebook_of_stored_scores_needs_no_network(folder, stored, tmp_path):
    notebook = evaluation_notebook(evaluated(stored, 2), str(folder), stored.calibration, stored=True)
    cells = [cell["source"] for cell in json.loads(notebook.text)["cells"] if cell["cell_type"] == "code"]
    script = "\n\n".join("".join(cell) for cell in cells)
    printed = subprocess.run(
        [sys.executable, "-c", f"{script}\n\nimport sys\nprint('torch' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    assert "As on the page." in printed
    assert printed.splitlines()[-1] == "False"


def test_a_notebook_stops_when_a_number_differs(run, folder, stored):
    shown = replace(evaluated(stored, 4), n=3)
    with pytest.raises(AssertionError):
        run(evaluation_notebook(shown, str(folder), stored.calibration, stored=True))


def test_a_notebook_refuses_another_calibration(run, folder, stored):
    other = Calibration(stored.calibration.score_vectors[::-1])
    with pytest.raises(AssertionError, match="another calibration"):
        run(evaluation_notebook(evaluated(stored, 4), str(folder), other, stored=True))


@pytest.mark.parametrize("with_calibration", [False, True])
def test_the_notebook_of_own_scores_holds_them_bit_for_bit(run, folder, with_calibration):
    generator = np.random.default_rng(0)
    known = ScoreSet("own-id", "your iD scores", False, generator.random((40, 3)))
    strange = ScoreSet("own-ood", "your OOD scores", True, generator.random((30, 3)) + 0.2)
    own = Calibration(generator.random((25, 3))) if with_calibration else None
    rows = side_by_side(own, known, [strange], 3)
    shown = EvaluationShown("your scores", known, [strange], rows, 3, "sum")
    space = run(evaluation_notebook(shown, "", own, stored=False))
    np.testing.assert_array_equal(space["id_set"].score_vectors, known.score_vectors)


def test_the_notebook_of_own_files_takes_the_detector_s_calibration(run, folder, calibration):
    generator = np.random.default_rng(1)
    known = ScoreSet("own-id", "your iD files", False, generator.random((10, 20)))
    strange = ScoreSet("own-ood", "your OOD files", True, generator.random((10, 20)))
    rows = side_by_side(calibration, known, [strange], 5)
    shown = EvaluationShown("mine", known, [strange], rows, 5, "sum")
    space = run(evaluation_notebook(shown, str(folder), calibration, stored=False))
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


def test_the_guarantee_s_notebook_draws_the_same_calibration_sets(run, folder, stored, calibration):
    settings = {"n": 5, "aggregate": "sum", "smoothed": True, "seed": 7}
    found, guarantee = a_study(stored), Guarantee(100, 0.05)
    space = run(guarantee_notebook(stored.name, str(folder), stored.calibration, guarantee, found, settings))
    np.testing.assert_array_equal(space["found"].resampled, found.resampled)
    assert space["guarantee"] == guarantee
    run(guarantee_notebook("bare", str(folder.parent / "bare"), bare(folder), guarantee, None, settings))


def bare(folder) -> Calibration:
    """The calibration of a detector without stored scores."""
    return read_calibration(read_settings(folder.parent / "bare"))


@pytest.mark.parametrize("with_new", [False, True])
def test_the_certified_notebook_finds_the_threshold_and_the_flags(run, with_new):
    generator = np.random.default_rng(3)
    normal, new = generator.normal(size=200), generator.normal(1, 1, size=50) if with_new else None
    certified = certify(normal, epsilon=0.1, delta=0.1, larger_is="normal")
    made = certified_export(certified, ("it's.csv", "new.csv" if with_new else ""), normal, new, None, "c")
    space = run(made.notebook)
    assert space["threshold"] == certified.threshold(0.1, 0.1)
    assert np.array_equal(space["arrays"]["calibration"], normal)
    assert made.report.commands[0].startswith("idecode certify 'it'\"'\"'s.csv'")


def test_no_template_has_code_that_depends_on_a_value():
    """Settings and numbers go into the first cell; a stranger's words are data there, and text in the heading."""
    for path in Path(idecode_core.report.__file__).parent.glob("*.py.jinja"):
        cells = path.read_text(encoding="utf-8").split("# %%")[1:]
        first = [cell for cell in cells if "{{ settings }}" in cell]
        assert len(first) == 1
        for cell in cells:
            inside = re.findall(r"{{(.*?)}}", cell)
            if "[markdown]" in cell.partition("\n")[0]:
                assert all(word.strip() == "title" or word.strip().startswith('"') for word in inside), path
            else:
                assert inside == [] or cell is first[0], path
        assert "eval(" not in path.read_text(encoding="utf-8")


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
        "f", comparison, ["a", "b", "c"], [1.0, 2.0, 3.0], [0.1, 0.2, 0.3], {}, figure, "c", Lost(0.1, 3, ())
    )
    assert [row["name"] for row in files.rows] == ["a", "b", "c"]
