"""Methods side by side and the paper's numbers."""

import numpy as np
import pytest

from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge
from idecode_core.folder.shelf import ScoreSet
from idecode_core.quality.methods import METHODS, evaluate, evaluate_sets, flagged_share
from idecode_core.quality.metrics import auroc, roc, tnr_at_tpr
from idecode_core.quality.side_by_side import curve, growth, side_by_side
from paper import numbers as paper


def made(name: str, factor: float, is_ood: bool, points: int, columns: int = 100, seed: int = 0) -> ScoreSet:
    generator = np.random.default_rng([seed, points])
    own = generator.exponential(size=(points, 1))
    vectors = factor * own * generator.exponential(size=(points, columns))
    return ScoreSet(name, name.upper(), is_ood, vectors.astype(np.float32))


@pytest.fixture(scope="module")
def sets() -> tuple[Calibration, ScoreSet, list[ScoreSet]]:
    calibration = Calibration(made("calibration", 1, False, 150, 20, seed=1).score_vectors)
    known = made("cifar10-test", 1, False, 80, seed=2)
    return (
        calibration,
        known,
        [made("svhn-test", 3, True, 70, seed=3), made("isun-test", 1.5, True, 60, seed=4)],
    )


def test_all_sets_at_once_give_what_each_gives_alone(sets):
    calibration, known, strange = sets
    for method in METHODS:
        together = evaluate_sets(calibration, known, strange, 5, "max", method)
        assert together == [evaluate(calibration, known, one, 5, "max", method) for one in strange]


def test_rows_come_set_by_set_with_the_draws_each_method_uses(sets):
    rows = side_by_side(*sets, 5, dataset="cifar10", transforms="projective", printed=paper.reported)
    assert [(row.ood_set, row.method, row.n) for row in rows] == [
        (name, method, n)
        for name in ("svhn-test", "isun-test")
        for method, n in (("base score", 1), ("ICAD", 1), ("iDECODe", 5))
    ]
    assert [row.paper_auroc and row.paper_auroc.mean for row in rows] == [
        92.86,
        92.86,
        95.70,
        None,
        None,
        None,
    ]


def test_without_a_calibration_raw_scores_are_ranked(sets):
    _, known, strange = sets
    found = evaluate_sets(None, known, strange, 3)[0]
    sums = [one.score_vectors.astype(np.float64)[:, 20:23].sum(axis=1) for one in (known, strange[0])]
    assert found.auroc.values[1] == pytest.approx(auroc(*sums))
    assert found.tnr.values[1] == pytest.approx(tnr_at_tpr(*sums))


def test_own_scores_with_few_columns_are_one_run():
    known, strange = made("a", 1, False, 30, 3), made("b", 2, True, 40, 3)
    found = evaluate_sets(None, known, [strange], 3)[0]
    assert len(found.auroc.values) == 1
    assert found.auroc.spread == 0.0


def test_the_flagged_share_is_counted_over_runs(sets):
    calibration, known, _ = sets
    epsilon = 30 / 151  # a level that p-values take: it must not be flagged
    shares = []
    for r in range(5):
        vectors = known.score_vectors[:, 20 * r : 20 * r + 4].astype(np.float64)
        shares.append((judge(calibration, vectors).p_values < epsilon).mean())
    assert flagged_share(calibration, known.score_vectors, 4, epsilon) == pytest.approx(np.mean(shares))


def test_a_thinned_curve_lies_on_the_full_one_and_keeps_its_area(sets):
    calibration, known, strange = sets
    evaluation = evaluate(calibration, known, strange[0], 1)
    generator = np.random.default_rng(0)
    id_scores, ood_scores = generator.normal(size=4000), generator.normal(1, size=3000)
    thin = curve(strange[0], evaluation, id_scores, ood_scores)
    full = roc(id_scores, ood_scores)
    points = set(zip(full.false_positive_rate, full.true_positive_rate, strict=True))
    assert set(zip(thin.false_positive_rate, thin.true_positive_rate, strict=True)) <= points
    assert len(thin.false_positive_rate) <= 300
    area = np.trapezoid(thin.true_positive_rate, thin.false_positive_rate)
    assert area == pytest.approx(auroc(id_scores, ood_scores), abs=2e-3)
    assert (thin.false_positive_rate[-1], thin.true_positive_rate[-1]) == (1.0, 1.0)


def test_the_paper_is_quoted_as_it_prints():
    cases = {
        ("cifar10", "projective", "svhn-test", "iDECODe", 20, "auroc"): (96.50, 0.01),
        ("cifar10", "projective", "tinyimagenet", "ICAD", 1, "tnr"): (60.73, 0.70),
        ("cifar10", "rotations", "lsunproxy", "iDECODe", 5, "auroc"): (87.52, 0.05),
        ("svhn", "projective", "cifar10-test", "base score", 1, "tnr"): (36.01, 0.52),
    }
    for arguments, (mean, spread) in cases.items():
        found = paper.reported(*arguments)
        assert found is not None
        assert (found.mean, found.spread) == (mean, spread)


@pytest.mark.parametrize(
    "arguments",
    [
        ("cifar10", "projective", "svhn", "iDECODe", 7, "auroc"),
        ("cifar10", "rotations", "svhn", "iDECODe", 5, "tnr"),
        ("cifar10", "projective", "isun", "iDECODe", 5, "auroc"),
        ("fashion", "rotations", "svhn", "iDECODe", 5, "auroc"),
        ("svhn", "projective", "cifar10", "iDECODe", 20, "auroc"),
    ],
)
def test_where_the_paper_prints_nothing_there_is_nothing(arguments):
    assert paper.reported(*arguments) is None


def test_the_paper_s_means_over_sets_agree_with_its_rows():
    audio = np.array([[row[0], *(pair[0] for pair in row[1:])] for row in paper.AUDIO])
    np.testing.assert_allclose(audio.mean(axis=0), [55.32, 56.87, 56.61, 59.31, 60.09], atol=0.01)


def test_growth_quotes_the_paper_at_1_5_and_20(sets):
    _, _, strange = sets
    found = growth(strange[0], [], [], "cifar10", "projective", paper.reported)
    assert found.paper_auroc == ((1, 92.86), (5, 95.70), (20, 96.50))
    assert found.paper_tnr == ((1, 84.11), (5, 93.81), (20, 97.12))
