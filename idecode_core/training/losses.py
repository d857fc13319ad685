"""Training losses: what makes M equivariant on the proper training set."""

import torch
from torch import Tensor

VARIANCE_FLOOR = 1e-4
MARGIN = 0.1
"""What iDECODe's paper has in its own one-class recipe."""


def gaussian_nll(mean: Tensor, log_variance: Tensor, target: Tensor) -> Tensor:
    """AVT's loss: [sum(lv) + sum((mu - t)^2 / (exp(lv) + 1e-4))] / B over predictions (batch, m, p). No KL term."""
    terms = log_variance + (mean - target).square() / (log_variance.exp() + VARIANCE_FLOOR)
    return terms.sum() / (target.shape[0] * target.shape[1])


def centre_triplet(z: Tensor, labels: Tensor, margin: float = MARGIN) -> Tensor:
    """GOAD's centre-triplet loss on features z (points, d) with transform classes (points,).

    mean(max(0, d(z, own centre)^2 + margin - min over other centres of d^2)); centres are batch means.
    """
    classes, labels = torch.unique(labels, return_inverse=True)
    if len(classes) < 2:
        return z.new_zeros(())
    one_hot = torch.nn.functional.one_hot(labels, len(classes)).to(z.dtype)  # (points, classes)
    centres = (one_hot.T @ z) / one_hot.sum(dim=0)[:, None]  # (classes, d)
    distances = torch.cdist(z, centres).square()  # (points, classes)
    to_its_centre = distances.gather(1, labels[:, None]).squeeze(1)
    others = distances.masked_fill(one_hot.bool(), torch.inf).amin(dim=1)
    return torch.relu(to_its_centre + margin - others).mean()
