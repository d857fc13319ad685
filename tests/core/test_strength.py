"""The worst misses and false alarms are those that one finds by looking at every point."""

import numpy as np
import pytest

from idecode_core.conformal.calibration import Calibration
from idecode_core.folder.shelf import ScoreSet
from idecode_core.quality.strength import extremes


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
