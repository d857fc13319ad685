"""The guarantee's notebook and report: the same calibration sets, both figures."""

# ruff: noqa: F811  `stored` is a fixture of another file

import numpy as np
from test_evaluations import (
    numbers,
    stored,  # noqa: F401  a fixture
)

from idecode_core.conformal.observed import study
from idecode_core.conformal.statement import Guarantee
from idecode_core.plots.guarantee import false_detection_rates
from idecode_core.report import to_html
from idecode_core.report.guarantees import guarantee_report


def test_the_guarantee_s_report_has_both_figures_and_says_whether_it_is_chance(stored):
    scores = [one.score_vectors[:, :5].astype(float).sum(axis=1) for one in (stored.id_set, stored.id_set)]
    found = study(*scores, k=200, epsilons=[0.05, 0.1], repeats=5, generator=np.random.default_rng(0))
    figures = [
        (false_detection_rates(200, found.epsilons, observed=found.observed, minus=minus), words)
        for minus, words in ((False, "First."), (True, "Second."))
    ]
    report = guarantee_report("name", Guarantee(200, 0.05), found, {"n": 5}, figures)
    page = to_html(report)
    assert "First." in page
    assert "Second." in page
    assert "in 99% of cases" in page
    assert all(0 <= value <= 1 for row in numbers(report) for value in row.values())
