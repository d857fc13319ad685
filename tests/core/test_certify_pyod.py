"""A certified threshold on the scores of real PyOD detectors, on real data: handwritten digits that come with scikit-learn."""

import numpy as np
import pytest
from pyod.models.base import BaseDetector
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from sklearn.datasets import load_digits

from idecode_core import certify
from idecode_core.conformal import flagging_rank
from idecode_core.errors import WrongSignWarning

TRAINED, K = 400, 250
SPLITS = 400


@pytest.fixture(scope="module", params=[IForest, KNN], ids=lambda kind: kind.__name__)
def scores(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    """What PyOD says of zeros to fours that it was not trained on, in random order, and of noise."""
    x, y = load_digits(return_X_y=True)
    normal = np.random.default_rng(0).permutation(x[y < 5])
    options = {"random_state": 0} if request.param is IForest else {}
    detector: BaseDetector = request.param(**options).fit(normal[:TRAINED])
    noise = np.random.default_rng(1).uniform(0, x.max(), (200, x.shape[1]))
    return detector.decision_function(normal[TRAINED:]), detector.decision_function(noise)


@pytest.mark.parametrize("epsilon", [0.02, 0.05, 0.2])
def test_normal_points_are_flagged_at_the_rate_that_was_promised(scores, epsilon) -> None:
    """Points are exchangeable over random splits, so the mean rate is J/(k+1) but for the noise of 400 splits."""
    normal, _ = scores
    generator = np.random.default_rng(1)
    rates = []
    for _ in range(SPLITS):
        mixed = generator.permutation(normal)
        flagged = mixed[K:] > certify(mixed[:K], larger_is="strange").threshold(epsilon)
        rates.append(flagged.mean())
    promised = flagging_rank(K, epsilon) / (K + 1)
    assert promised <= epsilon
    noise = np.std(rates) / np.sqrt(SPLITS)
    ties = 0.004  # equal scores are never flagged apart, which makes the rate a little smaller
    assert promised - 4 * noise - ties < np.mean(rates) < promised + 4 * noise


def test_with_delta_most_splits_keep_the_rate_and_without_half_do_not(scores) -> None:
    """A chance of 0.1 is for infinitely many test points; with 250 of them the noise of counting breaks a few more."""
    normal, _ = scores
    generator = np.random.default_rng(2)

    def broken(delta: float | None) -> float:
        found = []
        for _ in range(SPLITS):
            mixed = generator.permutation(normal)
            certified = certify(mixed[:K], larger_is="strange")
            found.append(np.mean(mixed[K:] > certified.threshold(0.1, delta)) > 0.1)
        return float(np.mean(found))

    assert broken(0.1) < 0.2 < 0.3 < broken(None)


def test_the_sign_of_pyod_is_the_one_that_the_docs_name(scores) -> None:
    """Noise lies further out, and the other sign is noticed."""
    normal, strange = scores
    certified = certify(normal[:K], larger_is="strange")
    assert np.mean(strange > certified.threshold(0.05)) > 0.9
    with pytest.warns(WrongSignWarning):
        certify(normal[:K], larger_is="normal").p_values(strange)
