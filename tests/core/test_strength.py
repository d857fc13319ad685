"""The worst misses and false alarms are those that one finds by looking at every point."""

from pathlib import Path

import numpy as np
import pytest

from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge
from idecode_core.folder.shelf import ScoreSet
from idecode_core.folder.stored import open_stored
from idecode_core.quality.strength import Caught, extremes, is_weak, power, power_sentence


@pytest.mark.parametrize("is_ood", [False, True])
def test_the_worst_points_are_found_by_counting(is_ood):
    generator = np.random.default_rng(5)
    calibration = Calibration(generator.random((99, 4)))
    vectors = generator.random((40, 4)) + 0.3 * is_ood
    found = extremes(calibration, ScoreSet("s", "S", is_ood, vectors), 3, 0.25, "sum", most=5)
    sums, known = vectors[:, :3].sum(axis=1), calibration.score_vectors[:, :3].sum(axis=1)
    p = [(1 + sum(k >= one for k in known)) / 100 for one in sums]
    by_hand = sorted(range(40), key=lambda i: sums[i] if is_ood else -sums[i])[:5]
    assert list(found.places) == by_hand
    assert found.values == pytest.approx([p[i] for i in by_hand])
    assert list(found.is_flagged) == [p[i] < 0.25 for i in by_hand]
    assert (found.points, found.flagged) == (40, sum(value < 0.25 for value in p))


def test_without_a_calibration_they_are_ranked_by_their_scores():
    found = extremes(None, ScoreSet("s", "S", True, np.array([[3.0], [1.0], [2.0]])), 1, 0.05, most=2)
    assert (found.places, found.values, found.flagged) == ((1, 2), (1.0, 2.0), None)


ROOT = Path(__file__).parents[2]


def test_power_is_the_share_of_the_stored_points_that_is_flagged() -> None:
    stored = open_stored(ROOT / "checkpoints" / "spoken-digits")
    found = {one.label: one.share for one in power(stored, 5, 0.1)}
    for ood in stored.ood_sets:
        flags = [
            judge(stored.calibration, ood.score_vectors[:, 20 * run : 20 * run + 5]).p_values < 0.1
            for run in range(ood.score_vectors.shape[1] // 20)
        ]
        assert found[ood.label] == pytest.approx(np.mean(flags))


def test_a_weak_detector_is_called_weak_and_an_unknown_one_unknown() -> None:
    weak = [Caught("a", 0.1), Caught("b", 0.3), Caught("c", 0.5)]
    strong = [Caught("a", 0.9), Caught("b", 1.0), Caught("c", 1.0)]
    assert is_weak(weak)
    assert power_sentence(weak, 0.05).startswith("Weak at epsilon = 0.05: ")
    assert "30 % of what does not belong" in power_sentence(weak, 0.05)
    assert not is_weak(strong)
    assert "eak" not in power_sentence(strong, 0.05)
    assert "not known" in power_sentence([], 0.05)
