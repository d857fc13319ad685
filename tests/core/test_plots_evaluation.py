"""Figures of Evaluate, Guarantee and Calibrate: titled axes, the shared colours, the right numbers at the right place."""

import numpy as np
import plotly.graph_objects as go
import pytest

from idecode_core.conformal import FalseDetectionLaw
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.observed import observed_rate, p_value_histogram, study
from idecode_core.folder.shelf import ScoreSet
from idecode_core.plots import evaluation as figures
from idecode_core.plots import guarantee as guarantees
from idecode_core.plots import histograms
from idecode_core.plots.style import CALIBRATION, ID, OOD, THRESHOLD, faded
from idecode_core.quality.methods import evaluate_sets, method_scores
from idecode_core.quality.metrics import roc
from idecode_core.quality.side_by_side import NamedCurve, curve, detector_on_set, growth, side_by_side
from idecode_core.quality.strength import operating_point
from paper.numbers import reported

RNG = np.random.default_rng(0)
CAL = Calibration(RNG.exponential(size=(120, 20)))
KNOWN = ScoreSet("cifar10-test", "CIFAR-10", False, RNG.exponential(size=(90, 100)).astype(np.float32))
STRANGE = [
    ScoreSet("svhn-test", "SVHN", True, (2 * RNG.exponential(size=(80, 100))).astype(np.float32)),
    ScoreSet("isun-test", "iSUN", True, (1.5 * RNG.exponential(size=(70, 100))).astype(np.float32)),
]
POINT = operating_point(CAL, KNOWN, STRANGE[0], 3, epsilon=0.1)


def roc_figure() -> go.Figure:
    found = evaluate_sets(CAL, KNOWN, STRANGE, 3)
    known = method_scores(CAL, KNOWN.score_vectors, 3)[0]
    curves = [
        curve(one, evaluation, known, method_scores(CAL, one.score_vectors, 3)[0])
        for one, evaluation in zip(STRANGE, found, strict=True)
    ]
    return figures.roc_curves(curves, "SVHN", operating=POINT.on_roc, epsilon=0.1)


def growth_figure() -> go.Figure:
    by_n = [evaluate_sets(CAL, KNOWN, STRANGE, n) for n in (1, 5)]
    lines = [
        growth(one, (1, 5), [found[i] for found in by_n], "cifar10", "projective", reported)
        for i, one in enumerate(STRANGE)
    ]
    return figures.against_n(lines, "SVHN", 5)


def some_study():
    generator = np.random.default_rng(1)
    return study(
        generator.random(300),
        generator.random(200),
        k=100,
        epsilons=[0.1, 0.2, 0.3],
        repeats=9,
        generator=generator,
    )


def rates_figure(**kind: bool) -> go.Figure:
    found = some_study()
    return guarantees.false_detection_rates(
        100,
        found.epsilons,
        resampled=found.resampled,
        observed=found.observed,
        epsilon=0.25,
        here=observed_rate(found.p_values, 0.25),
        **kind,
    )


ALL = {
    "roc": roc_figure,
    "methods": lambda: figures.methods_side_by_side(
        side_by_side(CAL, KNOWN, STRANGE, 5, dataset="cifar10", transforms="projective", printed=reported),
        "tnr",
    ),
    "growth": growth_figure,
    "histograms": lambda: histograms.score_histograms(
        histograms.groups_of(CAL.scores(3), CAL.scores(3), "SVHN", CAL.scores(3)), 4.0, "here"
    ),
    "rates": rates_figure,
    "rates minus epsilon": lambda: rates_figure(minus=True),
    "law": lambda: guarantees.rate_law(FalseDetectionLaw(100, 0.1)),
    "law of nothing": lambda: guarantees.rate_law(FalseDetectionLaw(5, 0.1)),
    "uniformity": lambda: guarantees.p_value_uniformity(p_value_histogram(some_study().p_values, 100)),
}


@pytest.mark.parametrize("figure", ALL.values(), ids=ALL.keys())
def test_every_axis_has_a_title_and_the_background_is_transparent(figure):
    made = figure()
    axes = [
        value for key, value in made.layout.to_plotly_json().items() if key.startswith(("xaxis", "yaxis"))
    ]
    assert len(axes) >= 2
    assert all(axis["title"]["text"] for axis in axes)
    assert made.layout.paper_bgcolor == "rgba(0,0,0,0)"


@pytest.mark.parametrize("figure", ALL.values(), ids=ALL.keys())
def test_only_colours_of_the_shared_palette_are_used(figure):
    palette = [colour.lower() for colour in (ID, OOD, THRESHOLD, CALIBRATION)]
    tints = tuple(faded(colour, 0.5).rsplit(",", 1)[0] for colour in (ID, OOD, THRESHOLD, CALIBRATION))
    for trace in figure().data:
        parts = trace.to_plotly_json()
        used = [parts.get("fillcolor")]
        for part in (
            parts.get("line"),
            parts.get("marker"),
            parts.get("marker", {}).get("line"),
            parts.get("error_x"),
        ):
            used.append((part or {}).get("color"))
        for colour in (
            one for part in used for one in ([part] if part is None or isinstance(part, str) else part)
        ):
            assert colour is None or colour.lower() in palette or colour.startswith(tints), colour


def test_every_curve_has_a_look_a_name_and_its_auroc():
    made = roc_figure()
    aurocs = {
        one.label: 100 * found.auroc.mean
        for one, found in zip(STRANGE, evaluate_sets(CAL, KNOWN, STRANGE, 3), strict=True)
    }
    lines = {trace.name: trace.line.color for trace in made.data if trace.name and trace.mode == "lines"}
    assert lines[f"SVHN {aurocs['SVHN']:.1f}"] == OOD
    assert set(lines) == {f"{label} {auroc:.1f}" for label, auroc in aurocs.items()}
    assert len({(trace.line.color, trace.line.dash) for trace in made.data if trace.name in lines}) == len(
        lines
    )
    assert made.layout.showlegend
    assert not made.layout.annotations, "a line from a name to its curve looks like one more curve"


def test_where_all_curves_hug_the_corner_the_axis_is_logarithmic_and_says_so():
    def axis(auroc: float) -> object:
        ends = np.array([0.0, 1.0])
        return figures.roc_curves([NamedCurve("a", ends, ends, auroc, 0.9)], "a").layout.xaxis

    assert (axis(0.99).type, axis(0.9).type) == ("log", None)
    assert "logarithmic" in axis(0.99).title.text
    assert "logarithmic" not in axis(0.9).title.text


def test_the_words_of_the_roc_curves_say_each_auroc_the_best_first():
    ends = np.array([0.0, 1.0])
    both = [NamedCurve(name, ends, ends, auroc, 0.9) for name, auroc in (("a", 0.8), ("b", 0.95))]
    assert figures.roc_words(both) == "ROC curves, AUROC in percent: b 95.0, a 80.0"


def test_the_operating_point_lies_on_the_selected_curve_where_epsilon_puts_it():
    made = roc_figure()
    diamond = next(trace for trace in made.data if trace.marker.symbol == "diamond")
    known, strange = (method_scores(CAL, one.score_vectors, 3)[0] for one in (KNOWN, STRANGE[0]))
    assert (diamond.x[0], diamond.y[0]) == pytest.approx((np.mean(-strange >= 0.1), np.mean(-known >= 0.1)))
    full = roc(known, strange)
    away = np.hypot(full.false_positive_rate - diamond.x[0], full.true_positive_rate - diamond.y[0])
    assert away.min() == pytest.approx(0, abs=1e-12)


def test_names_at_the_ends_of_lines_do_not_overlap():
    made = growth_figure()
    for axis in ("y", "y2"):
        heights = sorted(note.y for note in made.layout.annotations if note.yref == axis)
        low, high = made.layout["yaxis" if axis == "y" else "yaxis2"].range
        assert len(heights) == len(STRANGE)
        assert np.diff(heights).min() > 0.05 * (high - low)


def test_several_detectors_have_a_curve_a_name_and_a_point_each():
    found = [detector_on_set(name, CAL, KNOWN, STRANGE[0], 3, 0.1) for name in "abcdefg"]
    made = figures.detector_curves([one.curve for one in found], [one.point.on_roc for one in found], 0.1)
    lines = [trace for trace in made.data if trace.name]
    assert len({(trace.line.color, trace.line.dash) for trace in lines}) == 7, "no two look alike"
    assert [trace.marker.symbol for trace in made.data].count("diamond") == 7
    assert not made.layout.annotations


def test_the_paper_stands_beside_ours_where_it_has_a_number():
    printed = [trace for trace in ALL["methods"]().data if trace.name and "paper" in trace.name]
    assert list(printed[0].y) == ["SVHN"]
    assert list(printed[0].x) == [93.81]


def test_methods_that_hardly_differ_are_not_drawn_far_apart():
    twins = [ScoreSet("a", "A", True, KNOWN.score_vectors), ScoreSet("b", "B", True, KNOWN.score_vectors)]
    low, high = figures.methods_side_by_side(side_by_side(CAL, KNOWN, twins, 5), "auroc").layout.xaxis.range
    assert high - low == pytest.approx(4.0)
    assert low < 50 < high  # a set against itself has AUROC 50


def test_an_axis_in_percent_does_not_go_beyond_100():
    far = ScoreSet("far", "Far", True, KNOWN.score_vectors + np.float32(100))  # AUROC 100
    low, high = figures.methods_side_by_side(side_by_side(CAL, KNOWN, [far], 5), "auroc").layout.xaxis.range
    assert low < 100 <= high < 101
