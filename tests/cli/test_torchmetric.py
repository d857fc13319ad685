"""The torchmetrics metric, with the real package."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from idecode_core.errors import ScoreError
from idecode_core.quality.torchmetric import OODMetric


def test_the_metric_gathers_batches_and_agrees_with_scikit_learn() -> None:
    generator = np.random.default_rng(3)
    scores, is_ood = generator.normal(size=400), generator.random(400) < 0.4
    scores[is_ood] += 1.5
    metric = OODMetric()
    for part in np.array_split(np.arange(400), 7):
        metric.update(torch.from_numpy(scores[part]), torch.from_numpy(is_ood[part]))
    found = {name: float(value) for name, value in metric.compute().items()}
    assert found["auroc"] == pytest.approx(roc_auc_score(is_ood, scores))
    assert found["auroc_low"] < found["auroc"] < found["auroc_high"]
    # By hand: the share of OOD points below the score that 95 % of iD points pass at.
    inside = np.sort(scores[~is_ood])
    cut = inside[int(np.ceil(0.95 * inside.size)) - 1]
    assert found["fpr_at_95_tpr"] == pytest.approx(np.mean(scores[is_ood] <= cut), abs=0.01)


def test_the_metric_refuses_scores_that_do_not_fit() -> None:
    with pytest.raises(ScoreError, match="one shape"):
        OODMetric().update(torch.zeros(3), torch.zeros(2))
