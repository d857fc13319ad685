"""Files of Evaluate: one unit in every row, and a notebook of several detectors that finds the page's numbers."""

import csv
import io
import json
import sys

import numpy as np
import pytest
from trust_pages import make_checkpoints

from idecode_core.folder.stored import Stored, open_stored
from idecode_core.plots.evaluation import detector_curves, methods_side_by_side
from idecode_core.quality.metrics import auroc, fpr_at_tpr
from idecode_core.quality.side_by_side import DetectorOnSet, detector_on_set, side_by_side
from idecode_core.report import to_csv, to_html
from idecode_core.report.evaluations import (
    EvaluationShown,
    detectors_notebook,
    detectors_report,
    evaluation_report,
)
from paper.numbers import reported


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Stored:
    root = make_checkpoints(tmp_path_factory.mktemp("checkpoints"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDECODE_CHECKPOINTS", str(root))
        patch.setattr(sys, "path", list(sys.path))
        yield open_stored(root / "fashion-rotations")


def numbers(report) -> list[dict[str, float]]:
    """The rows of the CSV file, as far as they are rates."""
    rows = csv.DictReader(io.StringIO(to_csv(report)))
    words = ("ood_set", "id_set", "method", "detector", "n", "observed_flagged", "observed_points")
    return [{key: float(value) for key, value in row.items() if value and key not in words} for row in rows]


def test_every_rate_of_a_row_is_between_0_and_1_the_paper_s_too(stored):
    rows = side_by_side(
        stored.calibration,
        stored.id_set,
        stored.ood_sets,
        5,
        dataset="cifar10",
        transforms="projective",
        printed=reported,
    )
    assert any(row.paper_auroc for row in rows), "the test needs numbers of the paper"
    shown = EvaluationShown("name", stored.id_set, stored.ood_sets, rows, 5, "sum")
    made = numbers(evaluation_report(shown, methods_side_by_side(rows, "auroc"), ""))
    assert all(0 <= value <= 1 for row in made for value in row.values())
    row, line = next((row, line) for row, line in zip(rows, made, strict=True) if row.paper_auroc)
    assert line["paper_auroc"] == pytest.approx(row.paper_auroc.mean / 100)
    assert line["auroc_low_95"] <= line["auroc"] <= line["auroc_high_95"]


def test_the_export_has_the_fpr_of_the_scores(stored):
    rows = side_by_side(None, stored.id_set, stored.ood_sets, 20)
    shown = EvaluationShown("name", stored.id_set, stored.ood_sets, rows, 20, "sum")
    made = numbers(evaluation_report(shown, methods_side_by_side(rows, "auroc"), ""))
    runs = [
        [one.score_vectors[:, 20 * r : 20 * r + 20].astype(float).sum(axis=1) for r in range(5)]
        for one in (stored.id_set, stored.ood_sets[0])
    ]
    expected = np.mean([fpr_at_tpr(known, strange) for known, strange in zip(*runs, strict=True)])
    [line] = [line for row, line in zip(rows, made, strict=True) if row.method == "iDECODe"][:1]
    assert line["fpr_at_95_tpr"] == pytest.approx(expected)
    assert line["auroc"] == pytest.approx(np.mean([auroc(*pair) for pair in zip(*runs, strict=True)]))


def one_row(stored: Stored) -> DetectorOnSet:
    return detector_on_set(stored.name, stored.calibration, stored.id_set, stored.ood_sets[1], 4, 0.1)


def test_the_notebook_of_several_detectors_finds_the_page_s_numbers(stored):
    row = one_row(stored)
    notebook = detectors_notebook([row], {stored.name: row.n}, stored.ood_sets[1].name, "sum")
    space: dict = {}
    for cell in json.loads(notebook.text)["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)
    assert space["rows"][0].interval == row.interval


def test_the_report_of_several_detectors_has_one_unit_and_a_figure(stored):
    row = one_row(stored)
    figure = detector_curves([row.curve], [row.point.on_roc], 0.1)
    report = detectors_report([row], "sum", figure, "Look here.")
    assert all(0 <= value <= 1 for value in numbers(report)[0].values())
    assert "Look here." in to_html(report)
