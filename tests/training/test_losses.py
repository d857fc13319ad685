"""Training losses against values worked out by hand."""

import math

import pytest
import torch

from idecode_core.training.losses import centre_triplet, gaussian_nll


def test_gaussian_nll_equals_its_formula_by_hand() -> None:
    mean = torch.tensor([[[1.0, 0.0]], [[0.5, 2.0]]])  # (2 points, 1 draw, 2 parameters)
    target = torch.tensor([[[0.0, 0.0]], [[0.5, 0.0]]])
    log_variance = torch.tensor([[[0.0, 0.0]], [[math.log(2.0), math.log(4.0)]]])
    by_hand = ((0 + 1 / 1.0001) + 0 + (math.log(2) + 0) + (math.log(4) + 4 / 4.0001)) / 2
    assert gaussian_nll(mean, log_variance, target).item() == pytest.approx(by_hand)


def test_gaussian_nll_averages_over_points_and_draws_not_over_parameters() -> None:
    mean, target = torch.ones(3, 2, 8), torch.zeros(3, 2, 8)
    assert gaussian_nll(mean, torch.zeros(3, 2, 8), target).item() == pytest.approx(8 / 1.0001)


def test_centre_triplet_equals_its_formula_by_hand() -> None:
    # Class 0 at -1 and 1 (centre 0), class 1 at 2 and 2.2 (centre 2.1), on a line.
    z = torch.tensor([[-1.0], [1.0], [2.0], [2.2]])
    labels = torch.tensor([0, 0, 1, 1])
    terms = [
        max(0.0, 1 + 0.1 - 3.1**2),
        max(0.0, 1 + 0.1 - 1.1**2),
        max(0.0, 0.01 + 0.1 - 4.0),
        max(0.0, 0.01 + 0.1 - 4.84),
    ]
    assert centre_triplet(z, labels).item() == pytest.approx(sum(terms) / 4, abs=1e-5)
    nearer = torch.tensor([[-1.0], [1.0], [1.0], [1.2]])  # centres 0 and 1.1
    terms = [0.0, 1 + 0.1 - 0.01, 0.01 + 0.1 - 1.0, 0.01 + 0.1 - 1.44]
    expected = sum(max(0.0, term) for term in terms) / 4
    assert centre_triplet(nearer, labels).item() == pytest.approx(expected, abs=1e-5)


def test_centre_triplet_of_one_class_is_zero_and_labels_may_skip_classes() -> None:
    assert (
        centre_triplet(torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), torch.ones(4).long())
        == 0
    )
    z = torch.tensor([[0.0], [0.0], [5.0], [5.0]])
    assert centre_triplet(z, torch.tensor([0, 0, 3, 3])).item() == 0.0


def test_centre_triplet_has_a_finite_gradient_at_a_centre() -> None:
    z = torch.tensor([[0.0], [0.0], [0.1], [0.1]], requires_grad=True)
    centre_triplet(z, torch.tensor([0, 0, 1, 1])).backward()
    assert z.grad is not None
    assert torch.isfinite(z.grad).all()
