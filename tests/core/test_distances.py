"""Distances of features from those of a training set: computed another way, saved, permuted, inspected."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import mahalanobis
from sklearn.covariance import LedoitWolf
from sklearn.neighbors import NearestNeighbors
from small import random_images

from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.image.features import Preprocessing
from idecode_core.models import ModelConfig
from idecode_core.scorer import SCORERS
from idecode_core.scorers.distances import Mahalanobis, Neighbours
from idecode_core.scorers.features import Features, FeatureScorer, Frozen
from idecode_core.transforms import SmallAffine

KINDS = (Mahalanobis, Neighbours)


@pytest.fixture(scope="module")
def seen() -> Features:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        network = Frozen(ModelConfig("compact", outputs=4, widths=(8, 8, 8)))
    return Features(model=network, transforms=SmallAffine(), preprocessing=Preprocessing(16))


@pytest.fixture(scope="module")
def features() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(60, 8, generator=generator) * torch.linspace(0.1, 1, 8)
    y = torch.arange(60) % 3
    return torch.nn.functional.normalize(z + y[:, None], dim=-1), y


def fitted(kind: type[FeatureScorer], seen: Features, classes: tuple[str, ...] = ("a", "b")) -> FeatureScorer:
    z = seen.encode(random_images(20), n=2, seed=1)
    return kind.fit(z.flatten(0, 1), torch.arange(20).repeat_interleave(2) % 2, **vars(seen), classes=classes)


def test_mahalanobis_is_the_distance_from_the_closest_class(seen, features) -> None:  # type: ignore[no-untyped-def]
    z, y = features
    scorer = Mahalanobis.fit(z, y, **vars(seen))
    new = torch.nn.functional.normalize(torch.randn(5, 8, generator=torch.Generator().manual_seed(1)), dim=-1)
    means = [z[y == c].double().numpy().mean(axis=0) for c in range(3)]
    spread = np.concatenate([z[y == c].double().numpy() - means[c] for c in range(3)])
    precision = np.linalg.inv(LedoitWolf(assume_centered=True).fit(spread).covariance_)
    squares = np.array(
        [[mahalanobis(row, mean, precision) ** 2 for mean in means] for row in new.double().numpy()]
    )
    np.testing.assert_allclose(scorer.distances(new).numpy(), squares.min(axis=1), rtol=1e-3)
    assert scorer.nearest(new).tolist() == squares.argmin(axis=1).tolist()


def test_neighbours_is_the_distance_from_the_kth_neighbour(seen, features) -> None:  # type: ignore[no-untyped-def]
    z, y = features
    scorer = Neighbours.fit(z, y, k=4, **vars(seen))
    new = torch.nn.functional.normalize(torch.randn(5, 8, generator=torch.Generator().manual_seed(1)), dim=-1)
    distances, places = NearestNeighbors(n_neighbors=4).fit(z.half().float().numpy()).kneighbors(new.numpy())
    np.testing.assert_allclose(scorer.distances(new).numpy(), distances[:, 3], rtol=1e-4)
    assert scorer.nearest(new).tolist() == y[places[:, 0]].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_distances_of_features_of_length_one_of_each_draw(kind, seen) -> None:  # type: ignore[no-untyped-def]
    scorer, images = fitted(kind, seen), random_images(3, seed=4)
    z = seen.encode(images, n=3, seed=0)
    torch.testing.assert_close(z.norm(dim=-1), torch.ones(3, 3))
    expected = scorer.distances(z.flatten(0, 1)).reshape(3, 3)
    found = scorer.score(images, n=3, seed=0).score_vectors
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4)
    order = [2, 0, 1]
    np.testing.assert_allclose(
        scorer.score(images[order], n=3, seed=0).score_vectors, found[order], rtol=1e-4
    )
    np.testing.assert_allclose(scorer.score(images, n=2, seed=0).score_vectors, found[:, :2], rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_inspected_is_what_is_scored(kind, seen) -> None:  # type: ignore[no-untyped-def]
    image = random_images(1, seed=4)[0]
    for classes, word in ((("a", "b"), "closest to"), ((), "distance")):
        scorer = fitted(kind, seen, classes)
        inspected = scorer.inspect(image, n=4, seed=2)
        np.testing.assert_allclose(
            inspected.score_vector, scorer.score(image, n=4, seed=2).score_vectors[0], rtol=1e-4
        )
        assert [
            sum(term.value for term in terms) for terms in inspected.terms
        ] == inspected.score_vector.tolist()
        assert all(word in variant.predicted for variant in inspected.variants)
        assert [variant.draw for variant in inspected.variants] == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_one_scores_alike(kind, seen, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert SCORERS[kind.kind].endswith(kind.__name__)
    detector = Detector.calibrate("far", fitted(kind, seen), random_images(9, seed=3), n_max=2)
    save_detector(detector, tmp_path / "far")
    again = load_detector(tmp_path / "far", "cpu")
    assert again.scorer.classes == ("a", "b")  # type: ignore[attr-defined]
    images = random_images(4, seed=5)
    np.testing.assert_array_equal(again.score_vectors(images, n=2), detector.score_vectors(images, n=2))


@pytest.mark.parametrize("kind", KINDS)
def test_features_on_the_other_side_are_farther_than_known_ones(kind, seen, features) -> None:  # type: ignore[no-untyped-def]
    z, y = features
    scorer = kind.fit(z, y, **vars(seen))
    assert scorer.distances(-z).median() > 2 * scorer.distances(z).median()


def test_too_few_training_points_are_refused(seen) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SettingError, match="at least 5 training points"):
        Neighbours.fit(torch.ones(3, 8), torch.zeros(3, dtype=torch.long), **vars(seen))
