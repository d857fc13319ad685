"""AUROC with its interval and FPR at 95 % TPR as a torchmetrics metric, for training loops and Lightning. Needs the extra [metrics]."""

from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from idecode_core.errors import ScoreError
from idecode_core.quality.methods import compare


class OODMetric(Metric):
    """Scores (larger is stranger) and whether each point is OOD, gathered over batches and processes."""

    full_state_update = False
    scores: list[Tensor]
    is_ood: list[Tensor]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.add_state("scores", default=[], dist_reduce_fx="cat")
        self.add_state("is_ood", default=[], dist_reduce_fx="cat")

    def update(self, scores: Tensor, is_ood: Tensor) -> None:
        """scores (batch,), is_ood (batch,)."""
        if scores.shape != is_ood.shape or scores.ndim != 1:
            raise ScoreError(
                f"Expected scores and is_ood of one shape (batch,), got {tuple(scores.shape)} and {tuple(is_ood.shape)}; flatten them."
            )
        self.scores.append(scores.detach().double())
        self.is_ood.append(is_ood.detach().bool())

    def compute(self) -> dict[str, Tensor]:
        """auroc, auroc_low and auroc_high (95 %, DeLong), fpr_at_95_tpr; iD is the positive class."""
        scores, is_ood = dim_zero_cat(self.scores).cpu(), dim_zero_cat(self.is_ood).cpu()
        evaluation = compare([scores[~is_ood].numpy()], [scores[is_ood].numpy()])
        low, high = evaluation.interval
        values = {
            "auroc": evaluation.auroc.mean,
            "auroc_low": low,
            "auroc_high": high,
            "fpr_at_95_tpr": evaluation.fpr.mean,
        }
        return {name: torch.tensor(value) for name, value in values.items()}
