"""Theorem 1 on what is shipped: rates of stored iD test scores, from files in the repository alone.

The band is exact: the calibration set decides the true rate, Beta(J, k+1-J), and the test points are then drawn. A sound
detector leaves a band of 99.9 % once in a thousand times. The files do not change by themselves, so a failure means that
somebody changed scores, calibration or the ranking.

Where test scores or calibration points were looked at while choosing, config.json says so and the test's name too: for
those detectors a rate inside the band is weaker evidence.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from idecode_core.conformal.judge import judge
from idecode_core.conformal.law import observed_band
from idecode_core.folder.settings import CHECKPOINTS, read_settings
from idecode_core.folder.shelf import DRAWS_PER_RUN
from idecode_core.folder.stored import Stored, open_stored

DETECTORS = sorted(path.parent.name for path in CHECKPOINTS.glob("*/config.json"))
SHIPPED = [
    pytest.param(
        name,
        id=f"{name}, looked at while choosing" if read_settings(CHECKPOINTS / name).selection_leak else name,
    )
    for name in DETECTORS
]
EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
LEVEL = 0.999


@lru_cache(maxsize=len(DETECTORS))
def stored(name: str) -> Stored:
    return open_stored(CHECKPOINTS / name)


def outside_of_band(p_values: np.ndarray, k: int) -> list[float]:
    """Those epsilons at which the share of p-values below epsilon leaves the band."""
    bands = {epsilon: observed_band(k, epsilon, len(p_values), LEVEL) for epsilon in EPSILONS}
    return [
        epsilon for epsilon, (low, high) in bands.items() if not low <= np.mean(p_values < epsilon) <= high
    ]


def test_every_shipped_detector_is_here_with_scores() -> None:
    assert len(DETECTORS) >= 11
    assert all(any((Path(CHECKPOINTS) / name / "scores").glob("*.npz")) for name in DETECTORS)


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("n", [1, 5, 20])
def test_false_detection_rates_lie_inside_the_exact_band_in_each_stored_run(name: str, n: int) -> None:
    detector = stored(name)
    for first in range(0, detector.id_set.score_vectors.shape[1], DRAWS_PER_RUN):
        vectors = detector.id_set.score_vectors[:, first:][:, :n]
        assert outside_of_band(judge(detector.calibration, vectors).p_values, detector.calibration.k) == []


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("n", [5, 20])
def test_p_values_of_in_distribution_points_are_uniform(name: str, n: int) -> None:
    """Kolmogorov-Smirnov of test against calibration scores: p-values share one calibration set, so a test against the
    uniform law itself would count them as independent and find differences that are none."""
    detector = stored(name)
    test = detector.id_set.score_vectors[:, :n].astype(np.float64).sum(axis=1)
    assert stats.ks_2samp(detector.calibration.scores(n), test).pvalue > 0.001


def test_the_band_notices_points_that_are_not_exchangeable() -> None:
    """Scores that are a little too large, and OOD scores in the place of iD ones, leave it."""
    detector = stored("fashion-rotations")
    inside = detector.id_set.score_vectors[:, :20]
    assert outside_of_band(judge(detector.calibration, 1.3 * inside).p_values, detector.calibration.k) != []
    for ood_set in detector.ood_sets:
        p_values = judge(detector.calibration, ood_set.score_vectors, n=20).p_values
        assert outside_of_band(p_values, detector.calibration.k) != []
