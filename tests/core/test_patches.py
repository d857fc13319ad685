"""The strangest patch: distances computed another way, a coreset that covers, a map that points at the defect, saved, permuted."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from small import random_images

from idecode_core.detector import Detector
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.image.features import Preprocessing
from idecode_core.models import ModelConfig
from idecode_core.models.pretrained import MEAN, STD
from idecode_core.scorer import SCORERS
from idecode_core.scorers.features import Features
from idecode_core.scorers.patches import Patches, Places, coreset, thinned
from idecode_core.training.strangers import vanished
from idecode_core.transforms import Nudges, Windows

SIDE = 64


@pytest.fixture(scope="module")
def seen() -> Features:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        network = Patches.blank(ModelConfig("efficientnet-lite0", outputs=0, mean=MEAN, std=STD))
    return Features(model=network, transforms=Windows(), preprocessing=Preprocessing(SIDE))


def stripes(count: int, seed: int = 0) -> np.ndarray:
    """Pictures (count, SIDE, SIDE, 3) of the same stripes, moved and a little noisy."""
    generator = np.random.default_rng(seed)
    x = np.arange(SIDE)[None, :, None] + generator.integers(0, 8, size=(count, 1, 1))
    wave = 128 + 60 * np.sin(2 * np.pi * x / 8) + np.zeros((1, SIDE, 1))
    noisy = np.broadcast_to(wave.transpose(0, 2, 1)[..., None], (count, 1, SIDE, 3)) + np.zeros(
        (1, SIDE, 1, 1)
    )
    return np.clip(noisy + generator.normal(0, 4, noisy.shape), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def scorer(seen: Features) -> Patches:
    z = seen.encode(stripes(12), n=2, seed=1)  # (12, 2, 8, 8, d): windows of 59 pixels
    return Patches.fit(z.flatten(0, 3), torch.zeros(12 * 2 * 64, dtype=torch.long), size=300, **vars(seen))


def test_scores_are_the_largest_distance_of_a_place_from_its_nearest_neighbour(scorer, seen) -> None:  # type: ignore[no-untyped-def]
    images = stripes(3, seed=5)
    z = seen.encode(images, n=2, seed=0).numpy()
    expected = [
        [cdist(draw.reshape(-1, draw.shape[-1]), scorer.bank.numpy()).min(axis=1).max() for draw in own]
        for own in z
    ]
    found = scorer.score(images, n=2, seed=0).score_vectors
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    np.testing.assert_allclose(
        scorer.score(images[[2, 0, 1]], n=2, seed=0).score_vectors, found[[2, 0, 1]], rtol=1e-4
    )
    np.testing.assert_allclose(scorer.score(images, n=1, seed=0).score_vectors, found[:, :1], rtol=1e-4)


def test_each_place_has_features_of_two_layers_of_length_one(seen) -> None:  # type: ignore[no-untyped-def]
    z = seen.encode(random_images(2, SIDE), n=1, seed=0)
    assert z.shape == (2, 1, SIDE // 8, SIDE // 8, 40 + 112)
    torch.testing.assert_close(z[..., :40].norm(dim=-1), torch.ones(2, 1, 8, 8))
    torch.testing.assert_close(z[..., 40:].norm(dim=-1), torch.ones(2, 1, 8, 8))


def test_the_map_that_comes_with_the_score_points_at_the_defect(scorer) -> None:  # type: ignore[no-untyped-def]
    (picture,) = stripes(1, seed=7)
    broken = picture.copy()
    broken[40:52, 8:20] = 20
    inspected = scorer.inspect(broken, n=2, seed=0)
    np.testing.assert_allclose(
        inspected.score_vector, scorer.score(broken, n=2, seed=0).score_vectors[0], rtol=1e-4
    )
    row, column = np.unravel_index(inspected.distances.argmax(), inspected.distances.shape)
    assert 4 <= row <= 7  # rows of 8 pixels: 32 to 63
    assert 0 <= column <= 3
    assert inspected.distances.max() > 1.2 * scorer.inspect(picture, n=1, seed=0).distances.max()


def test_a_coreset_leaves_no_cluster_out_and_random_rows_would() -> None:
    generator = np.random.default_rng(0)
    centres = generator.normal(0, 10, (20, 5))
    many = np.repeat(np.arange(20), [1000] + [2] * 19)  # 19 rare kinds
    z = torch.from_numpy(centres[many] + generator.normal(0, 0.1, (len(many), 5))).float()
    kept = coreset(z, 25, generator)
    assert set(many[kept.numpy()]) == set(range(20))
    assert len(set(kept.tolist())) == 25
    assert coreset(z[:7], 25, generator).tolist() == list(range(7))


def test_thinning_keeps_patches_of_every_view() -> None:
    z = torch.arange(3 * 2 * 4 * 4).float().reshape(3, 2, 4, 4, 1)
    kept = thinned(z, views=20_000 // 5, generator=np.random.default_rng(0))
    assert kept.shape == (3, 2, 5, 1)
    for view, own in zip(kept.flatten(0, 1), z.flatten(2, 3).flatten(0, 1), strict=True):
        assert len(set(view.flatten().tolist())) == 5
        assert set(view.flatten().tolist()) <= set(own.flatten().tolist())


def test_a_saved_one_scores_alike(scorer, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert SCORERS["patches"].endswith("Patches")
    detector = Detector.calibrate("patchy", scorer, stripes(6, seed=9), n_max=2)
    save_detector(detector, tmp_path / "patchy")
    again = load_detector(tmp_path / "patchy", "cpu")
    images = random_images(2, SIDE)
    np.testing.assert_allclose(
        again.score_vectors(images, n=2), detector.score_vectors(images, n=2), rtol=1e-5
    )


def test_what_stands_out_from_a_plain_border_vanishes_and_the_rest_stays() -> None:
    generator = np.random.default_rng(0)
    paper = generator.normal(200, 3, (224, 224, 3)).astype(np.uint8)
    marked = paper.copy()
    marked[100:112, 60:70] = 30
    for seed in range(5):
        changed = vanished(marked, generator=np.random.default_rng(seed))
        assert changed.shape == marked.shape
        assert (changed[100:112, 60:70] > 150).all()  # the mark is gone,
        rows, columns = np.nonzero((changed != marked).any(axis=2))
        assert np.ptp(rows) * np.ptp(columns) <= 0.031 * 224**2  # no more than a small piece is painted,
        assert (
            2 < changed[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1].std() < 6
        )  # in grain


def faces(count: int, seed: int, missing: bool = False) -> np.ndarray:
    """Two squares, always at the same places but for a pixel; `missing` leaves one out. A bar is anywhere between."""
    generator = np.random.default_rng(seed)
    made = generator.normal(200, 4, (count, SIDE, SIDE, 3))
    for one in made:
        dy, dx, bar = generator.integers(0, 2), generator.integers(0, 2), generator.integers(28, 36)
        for left in (8, 48)[: 1 if missing else 2]:
            one[28 + dy : 36 + dy, left + dx : left + 8 + dx] = 40
        one[bar : bar + 3, 24:40] = 40
    return np.clip(made, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def placed(seen: Features) -> Places:
    still = replace(seen, transforms=Nudges())
    z = still.encode(faces(30, seed=0), n=1, seed=1)[:, 0]  # (30, 8, 8, d)
    return Places.fit(z, torch.zeros(30, dtype=torch.long), classes=("a",), **vars(still))


def test_a_place_is_compared_with_itself_in_units_of_its_spread(placed) -> None:  # type: ignore[no-untyped-def]
    z = replace(placed).encode(faces(30, seed=0), n=1, seed=1)[:, 0].double().numpy()
    off = z - z.mean(axis=0)
    covariance = np.einsum("nijd,nije->de", off, off) / (30 * 64)
    covariance += 0.01 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    squares = np.einsum("nijd,de,nije->nij", off, np.linalg.inv(covariance), off)
    spread = np.sqrt(squares.mean(axis=0) / z.shape[-1])
    expected = (np.sqrt(squares) / (spread + 0.1 * spread.mean())).max(axis=(1, 2))
    found = placed.score(faces(30, seed=0), n=1, seed=1).score_vectors[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-2)
    assert placed.classes == ()


def test_places_see_that_a_part_is_missing_and_where(placed, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    good, bad = faces(10, seed=1), faces(10, seed=2, missing=True)
    inside, outside = (placed.score(some, n=3, seed=0).score_vectors for some in (good, bad))
    assert inside.sum(axis=1).max() < outside.sum(axis=1).min()
    np.testing.assert_allclose(
        placed.score(bad[::-1], n=2, seed=0).score_vectors, outside[::-1, :2], rtol=1e-3
    )
    where = placed.inspect(bad[0], n=1, seed=0).distances
    row, column = np.unravel_index(where.argmax(), where.shape)
    assert 2 <= row <= 5  # the square was in rows 28 to 37
    assert 5 <= column <= 7  # and in columns 48 to 57
    save_detector(Detector.calibrate("placed", placed, good, n_max=2), tmp_path / "placed")
    again = load_detector(tmp_path / "placed", "cpu")
    np.testing.assert_allclose(again.score_vectors(bad, n=2), outside[:, :2], rtol=1e-3)


def test_nudges_keep_every_part_at_its_place() -> None:
    x = torch.arange(224.0).expand(1, 3, 224, 224)
    keys = np.array([[1, 2]], dtype=np.uint64)
    drawn = Nudges().sample(keys, 40)
    seen = Nudges().apply(x, drawn)[0, :, 0, 0]
    assert seen.shape == (40, 220)
    assert set(seen[:, 0].tolist()) == {0, 1, 2, 3, 4}
    assert (seen.diff(dim=1) == 1).all()  # never mirrored
