"""Stored scores and what is computed from them, against scikit-learn and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from small import small_scorer

from idecode_core.conformal.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.folder.detector import save_detector
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import ScoreSet, write_scores
from idecode_core.folder.stored import open_stored
from idecode_core.quality.methods import METHODS, Metric, evaluate, method_scores, runs


def score_set(name: str, mean: float, is_ood: bool, points: int = 60, seed: int = 0) -> ScoreSet:
    generator = np.random.default_rng([seed, points])
    own = generator.normal(mean, 1.0, size=(points, 1))
    vectors = np.exp(own + generator.normal(0, 0.7, size=(points, 100)))
    return ScoreSet(name, name.upper(), is_ood, vectors.astype(np.float32))


@pytest.fixture(scope="module")
def sets() -> tuple[Calibration, ScoreSet, ScoreSet]:
    calibration = score_set("calibration", 0.0, False, 200, seed=1).score_vectors[:, :20]
    return (
        Calibration(calibration),
        score_set("cifar10-test", 0, False, seed=2),
        score_set("svhn-test", 1, True, seed=3),
    )


def test_run_r_takes_columns_20r_to_20r_plus_n_minus_1() -> None:
    vectors = np.arange(300, dtype=np.float32).reshape(3, 100)
    found = runs(vectors, 4)
    assert len(found) == 5
    for r, run in enumerate(found):
        assert run.tolist() == [[100 * i + 20 * r + j for j in range(4)] for i in range(3)]


@given(st.integers(1, 120), st.data())
def test_runs_are_five_or_as_many_as_there_are_draws_for_and_share_none(
    columns: int, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, min(20, columns)))
    found = runs(np.arange(columns)[None], n)
    used = np.concatenate(found, axis=1)[0].tolist()
    assert len(found) == min(5, columns // n)
    assert len(used) == n * len(found) == len(set(used))
    assert used[:n] == list(range(n))  # the first run is what a page shows that scores n draws


def test_runs_of_more_than_20_draws_are_refused() -> None:
    with pytest.raises(SettingError, match="between 1 and 20"):
        runs(np.zeros((2, 100)), 21)


@pytest.mark.parametrize("method", METHODS)
def test_auroc_and_tnr_equal_scikit_learn_and_a_sorted_threshold(method: str, sets: tuple) -> None:
    calibration, known, strange = sets
    found = evaluate(calibration, known, strange, 5, method=method)
    draws = 5 if method == "iDECODe" else 1
    cal = calibration.score_vectors[:, :draws].sum(axis=1)
    aurocs, tnrs = [], []
    for r in range(5):
        scores = []
        for one in (known, strange):
            sums = one.score_vectors[:, 20 * r : 20 * r + draws].astype(np.float64).sum(axis=1)
            if method != "base score":  # Eq. 5 by a plain loop
                sums = -np.array([(np.sum(cal >= s) + 1) / (len(cal) + 1) for s in sums])
            scores.append(sums)
        labels = np.r_[np.zeros(len(known)), np.ones(len(strange))]
        aurocs.append(roc_auc_score(labels, np.concatenate(scores)))
        threshold = np.sort(scores[0])[int(np.ceil(0.9 * len(known))) - 1]
        tnrs.append(np.mean(scores[1] > threshold))
    np.testing.assert_allclose(found.auroc.values, aurocs)
    np.testing.assert_allclose(found.tnr.values, tnrs)
    assert found.auroc.mean == pytest.approx(np.mean(aurocs))
    assert found.auroc.spread == pytest.approx(np.std(aurocs, ddof=1))


def test_ties_with_the_calibration_survive_rounding_to_float32(tmp_path) -> None:
    thirds = np.full((10, 20), 1 / 3)  # not exact in float32
    save_detector(Detector("thirds", small_scorer(), Calibration(thirds)), tmp_path)
    known = np.full((4, 100), 1 / 3).astype(np.float32)
    write_scores(tmp_path, ScoreSet("own-test", "own", False, known), read_settings(tmp_path).scorer_sha256)
    stored = open_stored(tmp_path)
    for run in method_scores(stored.calibration, stored.id_set.score_vectors, 5):
        assert run.tolist() == [-1.0] * 4  # tied with every calibration point: P = 1


def test_an_unknown_method_is_refused(sets: tuple) -> None:
    with pytest.raises(SettingError, match="base score, ICAD, iDECODe"):
        evaluate(*sets, 5, method="magic")


def test_one_run_has_no_spread() -> None:
    assert Metric.of([0.5]) == Metric(0.5, 0.0, (0.5,))
