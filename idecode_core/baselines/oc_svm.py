"""OC-SVM: a one-class support vector machine on pixels (Schölkopf et al. 2001)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idecode_core.baselines.fitting import Budget, checked_pictures
from idecode_core.baselines.once import OnceScorer
from idecode_core.image.features import Preprocessing

NU = 0.1
"""At most this share of the training pictures lies outside (Ruff et al. 2018)."""
KEPT = 0.95
"""Share of the variance that the principal components keep (Ruff et al. 2018)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OCSVM(OnceScorer):
    """Score: rho - sum over support vectors s_i of alpha_i exp(-gamma ||s_i - t||^2), t the principal components of x.

    gamma is one over the variance of t times its dimension, scikit-learn's "scale": nothing strange is looked at to tune it.
    """

    kind: ClassVar[str] = "oc_svm"
    term: ClassVar[str] = "distance from the region of the class"

    mean: Tensor  # (p,): of the pixels
    components: Tensor  # (d, p)
    vectors: Tensor  # (s, d): support vectors
    alphas: Tensor  # (s,)
    gamma: Tensor  # (1,)
    rho: Tensor  # (1,)

    @classmethod
    def fit(cls, pictures: NDArray[np.uint8], budget: Budget | None = None, **parts: Any) -> Self:
        """From training pictures of the class (N, h, w, 3), uint8. Of the budget it needs the size only."""
        from sklearn.decomposition import PCA
        from sklearn.svm import OneClassSVM

        size = (budget or Budget()).size
        pixels = (checked_pictures(pictures, size).flatten(1).float() / 255).numpy()
        reduced = PCA(KEPT, svd_solver="full").fit(pixels)
        t = reduced.transform(pixels).astype(np.float64)
        svm = OneClassSVM(gamma="scale", nu=NU).fit(t)
        found = {
            "mean": reduced.mean_,
            "components": reduced.components_,
            "vectors": svm.support_vectors_,
            "alphas": svm.dual_coef_[0],
            "gamma": np.array([1 / (t.shape[1] * t.var())]),
            "rho": -svm.intercept_,
        }
        parts |= {name: torch.from_numpy(np.asarray(value)).float() for name, value in found.items()}
        return cls(preprocessing=Preprocessing(size), **parts)

    def strangeness(self, x: Tensor) -> Tensor:
        t = (x.flatten(1) - self.mean) @ self.components.T
        squares = torch.cdist(t, self.vectors, compute_mode="donot_use_mm_for_euclid_dist").square()
        return self.rho - torch.exp(-self.gamma * squares) @ self.alphas
