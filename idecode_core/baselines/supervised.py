"""Detectors of adversarial inputs that have seen some: a logistic regression on what the layers say (App. C.3).

It is fitted on pictures of the training side, as they are, with a little noise, and attacked by FGSM; so it may know FGSM, and
nothing else (Lee et al. 2018, section 3.2, "detection of unknown attack methods"; Ma et al. 2018). Noisy pictures stand on the
side of the clean ones, or the detector would learn to find noise.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from idecode_core.baselines.layers import POINTS_PER_BATCH, LayerScorer, observe_all
from idecode_core.errors import SettingError

FEWEST = 10
"""Attacked pictures that a regression needs: it is checked on five parts of them."""


NOISE = 0.25 / 4 * 0.2
"""Standard deviation of the noise in pixel units: what Lee et al. take beside FGSM on CIFAR-10, whose pixels have a deviation of 0.2."""


def noisy_copies(clean: Tensor, *, generator: torch.Generator) -> Tensor:
    """Clean pictures with Gaussian noise, within [0, 1]: (batch, 3, h, w)."""
    return (clean + NOISE * torch.randn(clean.shape, generator=generator)).clamp(0, 1)


Regression = tuple[Tensor, ...]
"""Centre (m,), scale (m,), weights (m,) and bias (1,)."""
UNFITTED: Regression = (torch.zeros(1), torch.ones(1), torch.zeros(1), torch.zeros(1))
"""Before it is fitted: a scorer is built with it, so that it can say its numbers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SupervisedScorer(LayerScorer):
    """Score: the log-odds that x is attacked, w . (t(x) - centre) / scale + b, for the numbers t(x) of a subclass."""

    regression: Regression = UNFITTED

    @abstractmethod
    def numbers(self, x: Tensor) -> Tensor:
        """Pictures (batch, 3, h, w) -> what the regression reads of each (batch, m)."""

    def strangeness(self, x: Tensor) -> Tensor:
        centre, scale, weights, bias = self.regression
        return ((self.numbers(x) - centre) / scale) @ weights + bias

    def all_numbers(self, x: Tensor) -> Tensor:
        """Many pictures, batch after batch: (N, m), on the CPU."""
        with torch.no_grad():
            return torch.cat(
                [self.numbers(b.to(self.device)).detach().cpu() for b in x.split(POINTS_PER_BATCH)]
            )

    def regressed(self, clean: Tensor, attacked: Tensor) -> Self:
        """This scorer with the regression fitted on pictures and the same pictures attacked."""
        _, found = regress(*self.both_sides(clean, attacked))
        return replace(self, regression=tuple(value.to(self.device) for value in found))

    def both_sides(self, clean: Tensor, attacked: Tensor) -> tuple[Tensor, Tensor]:
        """The numbers of what is to be passed, clean and noisy, and of what is to be found. Noise that changes the answer is left
        out, as the authors do."""
        check_attacked(clean, attacked)
        noisy = noisy_copies(clean, generator=torch.Generator().manual_seed(0))
        said, again = (observe_all(self.model, x).logits.argmax(dim=1) for x in (clean, noisy))
        return self.all_numbers(torch.cat([clean, noisy[said == again]])), self.all_numbers(attacked)


def regress(passed: Tensor, found: Tensor) -> tuple[float, Regression]:
    """Logistic regression on standardised numbers (scikit-learn), both sides counting the same: the AUROC on parts that were
    left out of the fit, five in turn, and what was fitted."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    numbers = torch.cat([passed, found]).double().numpy()
    attacked = np.r_[np.zeros(len(passed)), np.ones(len(found))]
    centre, scale = numbers.mean(axis=0), np.maximum(numbers.std(axis=0), 1e-12)
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    quality = cross_val_score(model, (numbers - centre) / scale, attacked, scoring="roc_auc").mean()
    model.fit((numbers - centre) / scale, attacked)
    fitted = (centre, scale, model.coef_[0], model.intercept_)
    return float(quality), tuple(torch.from_numpy(value).float() for value in fitted)


def check_attacked(clean: Tensor, attacked: Tensor) -> None:
    """SettingError unless each picture comes with itself attacked, and there are enough."""
    if clean.shape != attacked.shape or len(clean) < FEWEST:
        raise SettingError(
            f"Expected at least {FEWEST} pictures and the same ones attacked, got {tuple(clean.shape)} and "
            f"{tuple(attacked.shape)}; attack more pictures of the training set."
        )
