"""Detector: Algorithm 1 counted by hand, V kept, settings checked, the bound held."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from small import random_images, small_scorer

from idecode_core.conformal.calibration import Calibration
from idecode_core.detector import Detector
from idecode_core.errors import InputError, NothingFlaggedWarning, ScoreError, SettingError
from idecode_core.folder.detector import load_detector
from idecode_core.folder.settings import CHECKPOINTS
from idecode_core.image.sets import load_images
from idecode_core.transforms import Rotations

CALIBRATION_SET = random_images(24, seed=1)
TEST_SET = random_images(12, seed=2)


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector.calibrate("small", small_scorer(), CALIBRATION_SET, n_max=6, seed=4, summary="noise")


def test_detect_is_algorithm_1(detector):
    """Scored one by one and counted by hand."""
    n, epsilon = 3, 0.25
    found = detector.detect(TEST_SET, n=n, epsilon=epsilon, seed=9)
    calibration = [small_scorer().score(x, n=n, seed=4).score_vectors.sum() for x in CALIBRATION_SET]
    for i, x in enumerate(TEST_SET):
        vector = small_scorer().score(x, n=n, seed=9).score_vectors[0]
        np.testing.assert_allclose(found.score_vectors[i], vector, rtol=1e-4)
        assert found.scores[i] == pytest.approx(vector.sum(), rel=1e-4)
        p = (sum(c >= vector.sum() for c in calibration) + 1) / (len(calibration) + 1)
        assert found.p_values[i] == pytest.approx(p)
        assert found.is_ood[i] == (p < epsilon)
    assert found.epsilon == epsilon
    assert len(found) == len(TEST_SET)


def test_a_p_value_equal_to_epsilon_is_not_flagged(detector):
    found = detector.detect(TEST_SET, n=1, epsilon=0.5)
    at_epsilon = float(found.p_values[np.argmin(np.abs(found.p_values - 0.5))])
    again = detector.detect(TEST_SET, n=1, epsilon=at_epsilon)
    assert (again.p_values == at_epsilon).any()
    assert not again.is_ood[again.p_values == at_epsilon].any()
    assert again.is_ood.tolist() == (again.p_values < at_epsilon).tolist()


def test_the_transforms_that_were_drawn_come_with_the_detection(detector):
    found = detector.detect(TEST_SET[:2], n=4)
    texts = detector.describe(found, 1)
    assert texts == [f"rotated by {int(angle)} degrees" for angle in found.parameters[1]]
    assert [variant.applied for variant in detector.inspect(TEST_SET[1], n=4).variants] == texts


def test_score_vectors_are_those_of_detect_and_may_be_longer_than_n_max(detector):
    long = detector.score_vectors(TEST_SET, n=9)
    assert long.shape == (12, 9)
    np.testing.assert_allclose(long[:, :5], detector.detect(TEST_SET, n=5).score_vectors, rtol=1e-4)


def test_a_calibration_keeps_score_vectors_so_n_and_f_can_change_without_the_model(detector):
    """Invariant 3: for any n and F, p-values equal counting over calibration points that are scored one by one."""
    vectors = np.stack([small_scorer().score(x, n=6, seed=4).score_vectors[0] for x in CALIBRATION_SET])
    np.testing.assert_allclose(detector.calibration.score_vectors, vectors, rtol=1e-4)
    for n in (1, 4, 6):
        for aggregate, f in (("sum", np.sum), ("max", np.max), (lambda v: np.median(v, axis=1), np.median)):
            found = detector.detect(TEST_SET, n=n, aggregate=aggregate)
            calibration_scores = [f(vector[:n]) for vector in vectors]
            for score_vector, p in zip(found.score_vectors, found.p_values, strict=True):
                at_least = sum(score >= f(score_vector) for score in calibration_scores)
                assert p == pytest.approx((at_least + 1) / (len(vectors) + 1))


def test_calibration_and_test_points_pass_through_the_same_function(detector):
    """The same image in both places, under the same seed, has the same score vector: preprocessing, draws and all."""
    again = detector.score_vectors(CALIBRATION_SET, n=6, seed=4)
    np.testing.assert_allclose(again, detector.calibration.score_vectors, rtol=1e-4)


def test_a_detector_cannot_exist_uncalibrated():
    with pytest.raises(TypeError, match="calibration"):
        Detector("small", small_scorer())  # type: ignore[call-arg]
    for empty in ([], np.empty((0, 5))):
        with pytest.raises(ScoreError):
            Detector("small", small_scorer(), Calibration(empty))
    with pytest.raises(InputError, match="at least one image"):
        Detector.calibrate("small", small_scorer(), [])


def test_neither_detector_nor_detection_can_be_changed(detector):
    found = detector.detect(TEST_SET[:1], n=1)
    for thing, name in ((detector, "calibration"), (found, "p_values")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, None)
    with pytest.raises(ValueError, match="read-only"):
        detector.calibration.score_vectors[0, 0] = 0


@pytest.mark.parametrize("n", [0, -1, 7])
def test_n_outside_of_the_calibrations_draws_is_refused(detector, n):
    with pytest.raises(SettingError, match="n must lie between 1 and 6"):
        detector.detect(TEST_SET, n=n)


@pytest.mark.parametrize("epsilon", [0, 1, -0.1, 1.5, float("nan")])
def test_epsilon_outside_of_its_range_is_refused(detector, epsilon):
    with pytest.raises(SettingError, match="epsilon"):
        detector.detect(TEST_SET, n=1, epsilon=epsilon)


def test_an_epsilon_that_can_flag_nothing_warns_with_the_k_needed(detector):
    with pytest.warns(NothingFlaggedWarning, match=r"k=24.*1/25.*k of at least 100"):
        found = detector.detect(TEST_SET, n=1, epsilon=0.01)
    assert not found.is_ood.any()


def test_an_unknown_aggregate_is_refused(detector):
    with pytest.raises(SettingError, match="aggregate must be one of sum, mean, max"):
        detector.detect(TEST_SET, n=1, aggregate="median")


def test_settings_are_checked_before_any_image_is_read(detector):
    with pytest.raises(SettingError):
        detector.detect(iter(lambda: pytest.fail("an image was read"), None), n=99)


def test_false_detections_stay_within_the_law_of_the_bound():
    """600 fresh points of the same distribution, k = 199: the count of flagged ones is beta-binomial.

    Error level 1e-4. Sharing one draw between all points fails this (rates of 0.00 to 0.26 at epsilon 0.05).
    """
    k, tests, epsilon = 199, 600, 0.1
    scorer = small_scorer(Rotations())
    detector = Detector.calibrate("small", scorer, random_images(k, seed=10), n_max=2)
    flagged = int(detector.detect(random_images(tests, seed=11), n=2, epsilon=epsilon, seed=1).is_ood.sum())
    j = 19  # ceil(0.1 * 200) - 1
    law = stats.betabinom(tests, j, k + 1 - j)
    assert law.cdf(flagged) > 5e-5
    assert law.sf(flagged - 1) > 5e-5


@pytest.fixture(scope="module")
def embedded() -> Detector:
    return load_detector(CHECKPOINTS / "fashion-rotations", device="cpu")


def test_the_embedded_detector_passes_clothing_and_flags_what_is_not(embedded):
    """Bundled test sets. iD: at most epsilon on average; with 1,000 points and k of the checkpoint the rate stays below
    0.085 with error level 1e-4. OOD: most are found."""
    known = embedded.detect(load_images("fashion-sample").x[:300], n=5, epsilon=0.05)
    assert known.is_ood.mean() < 0.1
    for name in ("digits-sample", "photos-sample", "textures-sample"):
        strange = embedded.detect(load_images(name).x[:60], n=5, epsilon=0.05)
        assert strange.is_ood.mean() > 0.8, name


def test_the_embedded_detector_gives_the_same_answer_for_an_image_and_its_file(embedded, tmp_path):
    from PIL import Image

    x = load_images("fashion-sample").x[:3]
    paths = []
    for i, image in enumerate(x):
        paths.append(tmp_path / f"{i}.{'png' if i else 'bmp'}")
        Image.fromarray(image).save(paths[-1])
    assert np.array_equal(embedded.detect(paths).score_vectors, embedded.detect(x).score_vectors)
