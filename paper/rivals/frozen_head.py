"""A classifier on a frozen encoder: the encoder of a trained M stays as it is, and a new linear head learns labels (App. C.1.5).

The paper's head has the architecture of its decoder; ours decodes with one linear layer, so the head is one. All of its
weights come from one convex problem, multinomial logistic regression (scikit-learn), which has one solution.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from idecode_core.errors import SettingError
from idecode_core.models.equivariant import Equivariant, blank_model
from idecode_core.scorers.once import check_features

MOST_STEPS = 1000


def with_linear_head(model: Equivariant, z: Tensor, y: Tensor) -> Equivariant:
    """Features of the proper training set (N, d) by M's encoder and their classes (N,) -> the encoder with a head for classes."""
    from sklearn.linear_model import LogisticRegression

    check_features(z, y, 2)
    classes = int(y.max()) + 1
    missing = sorted(set(range(classes)) - set(y.tolist()))
    if missing or classes < 2:
        raise SettingError(
            f"A classifier needs training points of every class, and of two at least: got {classes} classes, and none of "
            f"{', '.join(map(str, missing)) or 'any other'}; add some."
        )
    features = z.double().numpy()
    centre, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-6)
    fitted = LogisticRegression(max_iter=MOST_STEPS).fit((features - centre) / scale, y.numpy())
    weights = fitted.coef_ if classes > 2 else np.concatenate([-fitted.coef_, fitted.coef_]) / 2
    biases = fitted.intercept_ if classes > 2 else np.concatenate([-fitted.intercept_, fitted.intercept_]) / 2
    weights = weights / scale  # (classes, d): the standardised features' weights, for features as they are
    new = blank_model(replace(model.config, outputs=classes, pair=False, hidden=0, variance=False))
    new.backbone.load_state_dict(model.backbone.state_dict())
    with torch.no_grad():
        new.head.weight.copy_(torch.from_numpy(weights))  # type: ignore[operator]
        new.head.bias.copy_(torch.from_numpy(biases - weights @ centre))  # type: ignore[operator]
    return new.eval()
