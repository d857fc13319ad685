"""Base NCMs against values computed by hand or in NumPy."""

import math

import numpy as np
import pytest
import torch
from scipy.special import softmax as scipy_softmax
from scipy.stats import entropy

from idecode_core.ncm import (
    BASE_NCMS,
    argmax_disagreement,
    cross_entropy,
    familiarity,
    invariance,
    kl_divergence,
    label_cross_entropy,
    label_logit,
    log_parameter_error,
    parameter_error,
    softmax_baseline,
)

GENERATOR = np.random.default_rng(0)
PREDICTION = GENERATOR.normal(size=(3, 5, 4))  # (batch, m, outputs)
REFERENCE = GENERATOR.normal(size=(3, 4))
TARGET = GENERATOR.integers(0, 4, size=(3, 5))
P, Q = scipy_softmax(REFERENCE, axis=-1), scipy_softmax(PREDICTION, axis=-1)


def t(array):
    return torch.from_numpy(array)


def test_parameter_error_is_the_mean_squared_error_over_the_parameters():
    assert parameter_error(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[0.0, 4.0]]])).tolist() == [[2.5]]
    target = GENERATOR.normal(size=(3, 5, 4))
    expected = ((PREDICTION - target) ** 2).mean(axis=-1)
    np.testing.assert_allclose(parameter_error(t(PREDICTION), t(target)), expected)


def test_log_parameter_error_is_the_log_and_finite_for_a_perfect_answer():
    target = np.random.default_rng(5).normal(size=PREDICTION.shape)
    expected = np.log(((PREDICTION - target) ** 2).mean(axis=-1))
    np.testing.assert_allclose(log_parameter_error(t(PREDICTION), t(target)), expected)
    assert torch.isfinite(log_parameter_error(t(target), t(target))).all()


def test_cross_entropy_is_minus_log_of_the_right_class():
    even = torch.zeros(1, 1, 4)
    assert cross_entropy(even, torch.tensor([[2]])).item() == pytest.approx(math.log(4))
    expected = -np.log(np.take_along_axis(Q, TARGET[..., None], axis=-1))[..., 0]
    np.testing.assert_allclose(cross_entropy(t(PREDICTION), t(TARGET)), expected)


def test_invariance_is_the_squared_distance_of_softmax_outputs():
    sure, opposite = torch.tensor([[50.0, 0.0]]), torch.tensor([[[0.0, 50.0], [50.0, 0.0]]])
    np.testing.assert_allclose(invariance(opposite, sure), [[2.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(invariance(t(PREDICTION), t(REFERENCE)), ((Q - P[:, None]) ** 2).sum(axis=-1))


def test_kl_divergence_equals_scipys_relative_entropy_of_x_to_gx():
    expected = [[entropy(P[i], Q[i, j]) for j in range(5)] for i in range(3)]
    np.testing.assert_allclose(kl_divergence(t(PREDICTION), t(REFERENCE)), expected)


def test_argmax_disagreement_is_zero_or_one():
    expected = (PREDICTION.argmax(-1) != REFERENCE.argmax(-1)[:, None]).astype(float)
    found = argmax_disagreement(t(PREDICTION), t(REFERENCE))
    assert found.tolist() == expected.tolist()
    assert set(found.flatten().tolist()) == {0.0, 1.0}


def test_label_cross_entropy_holds_gx_against_the_label_of_x():
    labels = REFERENCE.argmax(-1)
    expected = [[-math.log(Q[i, j, labels[i]]) for j in range(5)] for i in range(3)]
    np.testing.assert_allclose(label_cross_entropy(t(PREDICTION), t(REFERENCE)), expected)


def test_label_logit_is_minus_the_logit_of_the_label_of_x():
    labels = REFERENCE.argmax(-1)
    expected = [[-PREDICTION[i, j, labels[i]] for j in range(5)] for i in range(3)]
    np.testing.assert_allclose(label_logit(t(PREDICTION), t(REFERENCE)), expected)


def test_softmax_baseline_is_one_minus_the_largest_probability():
    np.testing.assert_allclose(softmax_baseline(t(REFERENCE)), 1 - P.max(axis=-1))


def test_familiarity_is_the_log_of_the_mean_activation():
    features = np.random.default_rng(3).gamma(1.0, size=(2, 3, 7))
    np.testing.assert_allclose(familiarity(t(features)), np.log(features.sum(axis=-1) / 7))
    assert torch.isfinite(familiarity(torch.zeros(2, 5))).all()  # a network that sees nothing is no error


@pytest.mark.parametrize("name", [name for name, ncm in BASE_NCMS.items() if ncm.familiarity])
def test_what_looks_familiar_scores_lower_by_a_part_that_the_networks_scale_cannot_change(name):
    ncm = BASE_NCMS[name]
    answers, reference, target = torch.zeros(1, 2, 6), torch.zeros(1, 6), torch.zeros(1, 2, dtype=torch.int64)
    features = torch.tensor([[[1.0, 2.0], [3.0, 6.0]]])  # the second looks three times as familiar
    scores = ncm(answers, reference, target, features)[0]
    assert (scores[0] - scores[1]).item() == pytest.approx(math.log(3), rel=1e-5)
    louder = ncm(answers, reference, target, 10 * features)[0]
    assert (louder[0] - louder[1]).item() == pytest.approx((scores[0] - scores[1]).item(), rel=1e-4)


@pytest.mark.parametrize("name", [name for name, ncm in BASE_NCMS.items() if ncm.against != "nothing"])
def test_a_perfect_prediction_scores_lowest(name):
    """Larger is stranger: the right answer, given surely, beats every other answer."""
    ncm = BASE_NCMS[name]
    answers = torch.eye(4, 6)[None] * 20  # one draw for each possible answer: (1, 4, 6)
    target = torch.zeros(1, 4, dtype=torch.int64)
    if name.endswith("parameter_error"):
        target = torch.tensor([20.0, 0, 0, 0, 0, 0]).expand(1, 4, 6)
    scores = ncm(answers, torch.tensor([[20.0, 0, 0, 0, 0, 0]]), target, torch.ones(1, 4, 6))[0]
    assert scores.argmin() == 0
    assert (scores[1:] > scores[0]).all()


@pytest.mark.parametrize("name", BASE_NCMS)
def test_targets_follow_the_prediction_to_its_device(name):
    target = (
        torch.zeros(2, 3, 4) if name.endswith("parameter_error") else torch.zeros(2, 3, dtype=torch.int64)
    )
    features = torch.empty(2, 3, 6, device="meta")
    scores = BASE_NCMS[name](
        torch.empty(2, 3, 4, device="meta"), torch.empty(2, 4, device="meta"), target, features
    )
    assert scores.device.type == "meta"
    assert scores.shape == (2, 3)
