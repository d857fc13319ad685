"""Training losses: what makes M equivariant on the proper training set."""

from torch import Tensor

from idecode_core.baselines.goad import centre_triplet

__all__ = ["centre_triplet", "gaussian_nll"]

VARIANCE_FLOOR = 1e-4


def gaussian_nll(mean: Tensor, log_variance: Tensor, target: Tensor) -> Tensor:
    """AVT's loss: [sum(lv) + sum((mu - t)^2 / (exp(lv) + 1e-4))] / B over predictions (batch, m, p). No KL term."""
    terms = log_variance + (mean - target).square() / (log_variance.exp() + VARIANCE_FLOOR)
    return terms.sum() / (target.shape[0] * target.shape[1])
