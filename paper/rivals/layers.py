"""What the detectors of adversarial inputs share (App. C.3): they look into the layers of the classifier that is attacked.

A layer is a map averaged over space, as Lee et al. (2018) take it; the last layer is what the classifier's head reads. The
classifier itself is not changed.

Detectors of adversarial inputs that have seen some: a logistic regression on what the layers say (App. C.3).

It is fitted on pictures of the training side, as they are, with a little noise, and attacked by FGSM; so it may know FGSM, and
nothing else (Lee et al. 2018, section 3.2, "detection of unknown attack methods"; Ma et al. 2018). Noisy pictures stand on the
side of the clean ones, or the detector would learn to find noise.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import relu

from idecode_core.errors import SettingError
from idecode_core.models import Equivariant
from idecode_core.models.backbones import Compact, CompactDenseNet, Pooled
from idecode_core.scorers.once import OnceScorer, check_features

POINTS_PER_BATCH = 256


@dataclass(frozen=True, eq=False)
class Observed:
    """What a classifier makes of a batch of pictures on its way to the answer."""

    layers: tuple[Tensor, ...]
    """Per layer (batch, channels), in order; the last one are the features that the head reads."""
    logits: Tensor  # (batch, classes)

    @property
    def features(self) -> Tensor:
        return self.layers[-1]


def observe(model: Equivariant, x: Tensor) -> Observed:
    """Pictures in [0, 1] (batch, 3, h, w) -> layers and logits, from one pass."""
    *early, last = maps(model, model.normalise(x))
    features = last.amax(dim=(2, 3)) if isinstance(model.backbone, Compact) else last.mean(dim=(2, 3))
    layers = (*(map_.mean(dim=(2, 3)) for map_ in early), features)
    return Observed(layers, model.decode(None, features[:, None])[:, 0])


def maps(model: Equivariant, x: Tensor) -> list[Tensor]:
    """What the stem and each group of the backbone make of x, maps (batch, channels, h, w); of a backbone that is one row of
    many layers, the last map of each size."""
    backbone = model.backbone
    if isinstance(backbone, Compact | CompactDenseNet):
        seen = [relu(backbone.stem(x)) if isinstance(backbone, Compact) else backbone.stem(x)]
        for group in backbone.groups:
            seen.append(group(seen[-1]))
        return seen
    if isinstance(backbone, Pooled):
        by_size: dict[int, Tensor] = {}
        for layer in backbone.layers:
            x = layer(x)
            by_size[x.shape[2]] = x
        return list(by_size.values())
    raise SettingError(
        f"The layers of {model.config.backbone} are not known here: expected a compact network, a ResNet or a DenseNet. Choose "
        "another classifier."
    )


def observe_all(model: Equivariant, x: Tensor) -> Observed:
    """Many pictures, batch after batch, without gradients; on the CPU."""
    device = next(model.parameters()).device
    with torch.no_grad():
        parts = [observe(model, batch.to(device)) for batch in x.split(POINTS_PER_BATCH)]
    layers = zip(*(part.layers for part in parts), strict=True)
    logits = torch.cat([part.logits for part in parts]).cpu()
    return Observed(tuple(torch.cat(layer).cpu() for layer in layers), logits)


def observe_training(model: Equivariant, x: Tensor, y: Tensor, fewest: int) -> Observed:
    """`observe_all` of training points with their classes; a SettingError unless there are enough, and they differ."""
    seen = observe_all(model, x)
    check_features(seen.features, y, fewest)
    return seen


def class_named(model: Equivariant, x: Tensor, classes: tuple[str, ...]) -> str:
    """The classifier's answer to one picture (1, 3, h, w), in words."""
    best = int(observe(model, x).logits[0].argmax())
    return f"the classifier says {classes[best] if classes else f'class {best}'}"


FEWEST = 10
"""Attacked pictures that a regression needs: half of them fit it when steps are compared, and are split in five for that."""
PENALTIES = np.logspace(4, -4, 10)
"""Penalties that are tried, the largest first: the ten of scikit-learn's LogisticRegressionCV, which Lee et al. use."""
NOISE = 0.25 / 4 * 0.2
"""Standard deviation of the noise in pixel units: what Lee et al. take beside FGSM on CIFAR-10, whose pixels have a deviation of 0.2."""


def noisy_copies(clean: Tensor, *, generator: torch.Generator) -> Tensor:
    """Clean pictures with Gaussian noise, within [0, 1]: (batch, 3, h, w)."""
    return (clean + NOISE * torch.randn(clean.shape, generator=generator)).clamp(0, 1)


Regression = tuple[Tensor, ...]
"""Weights (m,) and bias (1,)."""
UNFITTED: Regression = (torch.zeros(1), torch.zeros(1))
"""Before it is fitted: a scorer is built with it, so that it can say its numbers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SupervisedScorer(OnceScorer):
    """Score: the log-odds that x is attacked, w . t(x) + b, for the numbers t(x) of a subclass."""

    model: Equivariant
    regression: Regression = UNFITTED

    @classmethod
    def fit(
        cls, model: Equivariant, x: Tensor, y: Tensor, *, clean: Tensor, attacked: Tensor, **parts: Any
    ) -> Self:
        """x (N, 3, h, w) and y (N,) are of the proper training set; `clean` and `attacked` are the regression's."""
        return cls(model=model, **cls.learned(model, x, y), **parts).regressed(clean, attacked)

    def answer(self, x: Tensor) -> str:
        return class_named(self.model, x, self.classes)

    @classmethod
    @abstractmethod
    def learned(cls, model: Equivariant, x: Tensor, y: Tensor) -> dict[str, Any]:
        """What is found on the proper training set, by the names of fields."""

    @abstractmethod
    def numbers(self, x: Tensor) -> Tensor:
        """Pictures (batch, 3, h, w) -> what the regression reads of each (batch, m)."""

    def strangeness(self, x: Tensor) -> Tensor:
        weights, bias = self.regression
        return self.numbers(x) @ weights + bias

    def all_numbers(self, x: Tensor) -> Tensor:
        """Many pictures, batch after batch: (N, m), on the CPU."""
        with torch.no_grad():
            batches = (batch.to(self.device) for batch in x.split(POINTS_PER_BATCH))
            return torch.cat([self.numbers(batch).detach().cpu() for batch in batches])

    def regressed(self, clean: Tensor, attacked: Tensor) -> Self:
        """This scorer with the regression fitted on pictures and the same pictures attacked."""
        return replace(self, regression=regress(*self.both_sides(clean, attacked)))

    def both_sides(self, clean: Tensor, attacked: Tensor) -> tuple[Tensor, Tensor]:
        """The numbers of what is to be passed, clean and noisy, and of what is to be found. Noise that changes the answer is left
        out, as the authors do."""
        check_attacked(clean, attacked)
        noisy = noisy_copies(clean, generator=torch.Generator().manual_seed(0))
        said, again = (observe_all(self.model, x).logits.argmax(dim=1) for x in (clean, noisy))
        return self.all_numbers(torch.cat([clean, noisy[said == again]])), self.all_numbers(attacked)


def regress(passed: Tensor, flagged: Tensor) -> Regression:
    """Logistic regression (scikit-learn) on the numbers as they are, with the penalty under which most points that were left out
    of the fit, a fifth in turn, are named right: what the authors' code does. Standardised numbers would give a layer that hardly
    moves as much weight as one that moves far."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    numbers = torch.cat([passed, flagged]).double().numpy()
    attacked = np.r_[np.zeros(len(passed)), np.ones(len(flagged))]
    search = GridSearchCV(LogisticRegression(solver="newton-cholesky"), {"C": 1 / PENALTIES})
    model = search.fit(numbers, attacked).best_estimator_
    weights, bias = (torch.from_numpy(value).float() for value in (model.coef_[0], model.intercept_))
    return weights, bias


def quality(passed: Tensor, flagged: Tensor) -> float:
    """The AUROC of a regression on every second point, fitted on the others."""
    from sklearn.metrics import roc_auc_score

    weights, bias = regress(passed[::2], flagged[::2])
    left = torch.cat([passed[1::2], flagged[1::2]]) @ weights + bias
    return float(roc_auc_score(np.r_[np.zeros(len(passed) // 2), np.ones(len(flagged) // 2)], left.numpy()))


def check_attacked(clean: Tensor, attacked: Tensor) -> None:
    """SettingError unless each picture comes with itself attacked, and there are enough."""
    if clean.shape != attacked.shape or len(clean) < FEWEST:
        raise SettingError(
            f"Expected at least {FEWEST} pictures and the same ones attacked, got {tuple(clean.shape)} and "
            f"{tuple(attacked.shape)}; attack more pictures of the training set."
        )
