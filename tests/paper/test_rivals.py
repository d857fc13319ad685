"""Rivals on a classifier: each beside somebody else's computation, saved, permuted, calibrated; and what they refuse."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_ood.detector as others
import torch
from scipy.spatial.distance import mahalanobis
from small import SIZE, OnTheCpuFirst, random_images, small_model
from torch import Tensor

from idecode_core.conformal import observed_band
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.image.features import Preprocessing, unit_range
from idecode_core.models import Equivariant, ModelConfig
from idecode_core.scorer import SCORERS
from idecode_core.scorers.distances import MahalanobisOnce, NeighboursOnce, UnitMahalanobisOnce, ViM
from idecode_core.scorers.logits import ODIN, SBP, Energy
from idecode_core.scorers.once import OnNetwork

KINDS = (SBP, ODIN, Energy, ViM, MahalanobisOnce, UnitMahalanobisOnce, NeighboursOnce)
CLASSES = ("a", "b", "c")


@pytest.fixture(scope="module")
def model() -> Equivariant:
    """An untrained network with a bias in its last layer and features that differ from picture to picture."""
    network = small_model(len(CLASSES), seed=3)
    with torch.no_grad(), torch.random.fork_rng(devices=()):
        torch.manual_seed(5)
        for layer in (network.head.weight, network.head.bias):
            layer.copy_(3 * torch.randn_like(layer))
    return network


@pytest.fixture(scope="module")
def training(model: Equivariant) -> tuple[Tensor, Tensor]:
    """Features of 80 training pictures and their classes."""
    with torch.no_grad():
        return model.encode(pictures(80, seed=1)), torch.arange(80) % 3


def pictures(count: int, seed: int) -> Tensor:
    return unit_range(list(random_images(count, seed=seed)), torch.device("cpu"))


def fitted(kind: type[OnNetwork], model: Equivariant, training: tuple[Tensor, Tensor], **chosen: Any) -> Any:
    scorer = kind.fit(*training, model=model, preprocessing=Preprocessing(SIZE), classes=CLASSES)
    return type(scorer)(**{**vars(scorer), **chosen})


def scores(scorer: OnNetwork, x: Tensor) -> np.ndarray:
    with torch.no_grad():
        return scorer.strangeness(x).double().numpy()


def whole(model: Equivariant) -> torch.nn.Module:
    """Pictures -> logits, as a module for others."""

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Tensor) -> Tensor:
            return self.model.decode(None, self.model.encode(x)[:, None])[:, 0]

    return Whole()


@pytest.mark.parametrize(
    ("kind", "other", "shift"),
    [(SBP, others.MaxSoftmax, 1.0), (Energy, others.EnergyBased, 0.0)],
)
def test_scores_of_logits_are_those_of_pytorch_ood(kind, other, shift, model, training) -> None:  # type: ignore[no-untyped-def]
    x = pictures(6, seed=2)
    theirs = other(whole(model)).predict(x).detach().numpy() + shift
    np.testing.assert_allclose(scores(fitted(kind, model, training), x), theirs, atol=1e-6)


@pytest.mark.parametrize(("temperature", "step"), [(1000.0, 0.0014), (2.0, 0.05)])
def test_odin_is_that_of_pytorch_ood_on_pixels_from_0_to_1(temperature, step, model, training) -> None:  # type: ignore[no-untyped-def]
    x = pictures(6, seed=2)
    ours = fitted(ODIN, model, training, temperature=temperature, step=step)
    theirs = others.ODIN(whole(model), eps=step, temperature=temperature).predict(x).numpy()
    np.testing.assert_allclose(scores(ours, x) - 1, theirs, atol=1e-6)
    assert not np.allclose(scores(ours, x), scores(fitted(SBP, model, training), x), atol=1e-3)


def test_odin_moves_towards_the_label_so_that_the_classifier_is_surer(model, training) -> None:  # type: ignore[no-untyped-def]
    x = pictures(8, seed=2)
    still, moved = (fitted(ODIN, model, training, temperature=1.0, step=step) for step in (0.0, 0.01))
    np.testing.assert_allclose(scores(still, x), scores(fitted(SBP, model, training), x))
    assert (scores(moved, x) < scores(still, x)).all()


def test_vim_is_that_of_pytorch_ood(model) -> None:  # type: ignore[no-untyped-def]
    generator = torch.Generator().manual_seed(0)
    spread = torch.linspace(0.3, 2, 8)  # features of a size that single precision, theirs, is enough for
    z, new = (torch.randn(count, 8, generator=generator) * spread for count in (60, 6))
    theirs = others.ViM(None, d=4, w=model.head.weight, b=model.head.bias)  # 4: half of 8 features
    theirs.fit_features(z, torch.arange(60) % 3)
    with OnTheCpuFirst():
        ours = ViM.fit(z.cpu(), torch.arange(60) % 3, model=model, preprocessing=Preprocessing(SIZE))
    with torch.no_grad():
        found = ours.of_features(new, ours.logits(new)).numpy()
    np.testing.assert_allclose(found, theirs.predict_features(new).numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", [MahalanobisOnce, UnitMahalanobisOnce])
def test_mahalanobis_is_that_of_scipy_with_the_shrunk_covariance_of_scikit_learn(  # type: ignore[no-untyped-def]
    kind, model, training
) -> None:
    from sklearn.covariance import LedoitWolf

    z, y = (part.double().numpy() for part in training)
    x = pictures(5, seed=2)
    new = model.encode(x).detach().double().numpy()
    if kind is UnitMahalanobisOnce:
        z, new = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (z, new))
    means = [z[y == c].mean(axis=0) for c in range(3)]
    spread = np.concatenate([z[y == c] - means[c] for c in range(3)])
    precision = np.linalg.inv(LedoitWolf(assume_centered=True).fit(spread).covariance_)
    expected = [min(mahalanobis(row, mean, precision) ** 2 for mean in means) for row in new]
    np.testing.assert_allclose(scores(fitted(kind, model, training), x), expected, rtol=2e-3)


def test_neighbours_is_that_of_pytorch_ood_with_the_published_k(model, training) -> None:  # type: ignore[no-untyped-def]
    from sklearn.neighbors import NearestNeighbors

    x = pictures(6, seed=2)
    bank, new = (torch.nn.functional.normalize(z, dim=1).detach() for z in (training[0], model.encode(x)))
    found, _ = NearestNeighbors(n_neighbors=50).fit(bank.half().float().numpy()).kneighbors(new.numpy())
    np.testing.assert_allclose(
        scores(fitted(NeighboursOnce, model, training), x), found[:, 49], rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_only_a_batch_and_a_saved_one_scores_alike(kind, model, training, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert SCORERS[kind.kind].endswith(f":{kind.__name__}")
    scorer = fitted(kind, model, training)
    detector = Detector.calibrate("rival", scorer, random_images(30, seed=4))
    save_detector(detector, tmp_path / "rival")
    again = load_detector(tmp_path / "rival", "cpu")
    images = random_images(5, seed=5)
    found = again.score_vectors(images, n=1)
    np.testing.assert_array_equal(found, detector.score_vectors(images, n=1))
    alone = np.concatenate([again.score_vectors(image, n=1) for image in images[[3, 1]]])
    np.testing.assert_allclose(alone, found[[3, 1]], rtol=1e-3, atol=1e-6)
    inspected = again.inspect(images[0], n=1)
    np.testing.assert_allclose(inspected.score_vector, found[0], rtol=1e-3, atol=1e-6)
    assert inspected.variants[0].predicted.split(",")[0] in CLASSES
    assert len(np.unique(found)) == 5


def test_p_values_of_pictures_never_seen_hold_the_bound(model, training) -> None:  # type: ignore[no-untyped-def]
    """Every rival at once: the share that is flagged lies in the band that holds it in 99.99 % of cases."""
    calibration, new = random_images(300, seed=6), random_images(300, seed=7)
    low, high = observed_band(300, 0.1, 300, level=0.9999)
    for kind in KINDS:
        found = Detector.calibrate("rival", fitted(kind, model, training), calibration).detect(
            new, epsilon=0.1
        )
        assert low <= found.is_ood.mean() <= high, kind.kind


BAD = {
    "at least": (torch.empty(0, 8), torch.empty(0, dtype=torch.long)),
    "got \\(1, 8\\)": (torch.ones(1, 8), torch.zeros(1, dtype=torch.long)),
    "same features": (torch.ones(60, 8), torch.arange(60) % 3),
    "1 of 60 training points have features that are not finite": (
        torch.randn(60, 8, generator=torch.Generator().manual_seed(0)).index_fill(
            0, torch.tensor([7]), torch.nan
        ),
        torch.arange(60) % 3,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", BAD)
def test_what_cannot_be_fitted_is_refused_in_a_sentence(words, kind, model) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SettingError, match=words):
        kind.fit(*BAD[words], model=model, preprocessing=Preprocessing(SIZE))


def test_a_covariance_of_nothing_is_singular(model) -> None:  # type: ignore[no-untyped-def]
    y = torch.arange(60) % 3
    with pytest.raises(SettingError, match="singular"):
        MahalanobisOnce.fit(
            torch.eye(8)[y], y, model=model, preprocessing=Preprocessing(SIZE)
        )  # one point per class


def test_vim_refuses_features_in_half_of_the_dimensions_and_hidden_layers(model, training) -> None:  # type: ignore[no-untyped-def]
    origin = -torch.linalg.pinv(model.head.weight.double()) @ model.head.bias.double()
    generator = torch.Generator().manual_seed(0)
    flat = origin + torch.cat([torch.randn(60, 4, generator=generator), torch.zeros(60, 4)], dim=1)
    with pytest.raises(SettingError, match="half of their dimensions"):
        ViM.fit(
            flat.float().detach(),
            torch.zeros(60, dtype=torch.long),
            model=model,
            preprocessing=Preprocessing(SIZE),
        )
    hidden = Equivariant(ModelConfig("compact", outputs=3, widths=(8, 8, 8), hidden=4))
    with pytest.raises(SettingError, match="linear head"):
        ViM.fit(*training, model=hidden, preprocessing=Preprocessing(SIZE))


def test_a_network_that_compares_pairs_is_refused(training) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SettingError, match="one picture"):
        SBP.fit(*training, model=small_model(pair=True), preprocessing=Preprocessing(SIZE))
