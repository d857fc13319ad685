"""AE over layers: how badly small autoencoders of the layers reconstruct x (Wójcik et al. 2020, arXiv 2006.10013; App. C.3)."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from idecode_core.models import Equivariant
from idecode_core.scorers.once import OnceScorer, check_features
from paper.rivals.layers import class_named, observe, observe_all

EPOCHS, BATCH, LEARNING_RATE = 30, 128, 1e-3
OUTLIERS = 0.05
"""nu of the one-class SVM: the authors' share of outliers."""


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """d -> d/2 -> d/4 -> d/2 -> d with ReLU between, on standardised features of one layer."""

    weights: tuple[Tensor, ...]  # centre, scale, then weight and bias of each of the four linear maps

    def __call__(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Features (batch, d) -> squared error of the reconstruction and norm of the latent code, each (batch,)."""
        centre, scale, *maps = self.weights
        z = (z - centre) / scale
        code = nn.functional.linear(relu(nn.functional.linear(z, maps[0], maps[1])), maps[2], maps[3])
        back = nn.functional.linear(relu(nn.functional.linear(code, maps[4], maps[5])), maps[6], maps[7])
        return (back - z).square().mean(dim=1), code.norm(dim=1)


def trained(z: Tensor) -> Autoencoder:
    """An autoencoder of features (N, d) of the training set. Torch's global generator is left as it was."""
    d = z.shape[1]
    centre, scale = z.mean(dim=0), z.std(dim=0).clamp_min(1e-6)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        sizes = ((d, max(1, d // 2)), (max(1, d // 2), max(1, d // 4)))
        layers = [nn.Linear(*pair) for pair in (*sizes, *((b, a) for a, b in reversed(sizes)))]
    maps = tuple(value for layer in layers for value in (layer.weight, layer.bias))
    network = Autoencoder((centre, scale, *maps))
    optimiser = torch.optim.Adam(maps, LEARNING_RATE)
    generator = torch.Generator().manual_seed(0)
    with torch.enable_grad():
        for _ in range(EPOCHS):
            for chosen in torch.randperm(len(z), generator=generator).split(BATCH):
                optimiser.zero_grad()
                network(z[chosen])[0].mean().backward()
                optimiser.step()
    return Autoencoder(tuple(value.detach() for value in network.weights))


@dataclass(frozen=True, eq=False, kw_only=True)
class Reconstruction(OnceScorer):
    """A one-class SVM (radial kernel) on the logs of error and latent norm of each layer's autoencoder.

    Score: rho - sum over support vectors s_i of alpha_i exp(-gamma ||s_i - t||^2), for t(x) standardised. No attacked input
    is seen. The autoencoders take the layers' means over space, where the authors' take the maps.
    """

    kind, title, term = "reconstruction", "AE layers", "how badly the layers are reconstructed"
    summary = "how unusual errors and codes of small autoencoders of the layers are, by a one-class SVM (Wójcik et al. 2020)"

    model: Equivariant
    encoders: tuple[Tensor, ...]  # of each layer in turn the ten tensors of its `Autoencoder`
    svm: tuple[Tensor, ...]
    """Centre and scale (2 * layers,), support vectors (N, 2 * layers), their alphas (N,), gamma (1,) and rho (1,)."""

    @classmethod
    def fit(cls, model: Equivariant, x: Tensor, y: Tensor, **parts: Any) -> Self:
        """x (N, 3, h, w) and y (N,) are of the proper training set: one half trains autoencoders, the other the SVM."""
        from sklearn.svm import OneClassSVM

        check_features(x.flatten(1), y, 4)
        half = len(x) // 2
        encoders = [trained(layer) for layer in observe_all(model, x[:half]).layers]
        numbers = judged(encoders, observe_all(model, x[half:]).layers).double().numpy()
        centre, scale = numbers.mean(axis=0), np.maximum(numbers.std(axis=0), 1e-12)
        svm = OneClassSVM(gamma="scale", nu=OUTLIERS).fit((numbers - centre) / scale)
        gamma = 1 / (numbers.shape[1] * ((numbers - centre) / scale).var())  # scikit-learn's "scale"
        arrays = (centre, scale, svm.support_vectors_, svm.dual_coef_[0], np.array([gamma]), -svm.intercept_)
        fitted = tuple(torch.from_numpy(np.asarray(value)).float() for value in arrays)
        flat = tuple(weight for encoder in encoders for weight in encoder.weights)
        return cls(model=model, encoders=flat, svm=fitted, **parts)

    def answer(self, x: Tensor) -> str:
        return class_named(self.model, x, self.classes)

    def strangeness(self, x: Tensor) -> Tensor:
        layers = observe(self.model, x).layers
        size = len(self.encoders) // len(layers)
        encoders = [Autoencoder(self.encoders[size * i : size * (i + 1)]) for i in range(len(layers))]
        centre, scale, vectors, alphas, gamma, rho = self.svm
        t = (judged(encoders, layers) - centre) / scale  # (batch, 2 * layers)
        squares = torch.cdist(t, vectors, compute_mode="donot_use_mm_for_euclid_dist").square()
        return rho - torch.exp(-gamma * squares) @ alphas


def judged(encoders: list[Autoencoder], layers: tuple[Tensor, ...]) -> Tensor:
    """Per layer the logs of reconstruction error and latent norm: (batch, 2 * layers)."""
    with torch.no_grad():
        numbers = [number for encoder, z in zip(encoders, layers, strict=True) for number in encoder(z)]
    return torch.stack(numbers, dim=1).clamp_min(1e-12).log()
