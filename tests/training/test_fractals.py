"""Fractals and PixMix: from their seed, mixed as published."""

import numpy as np
import pytest
import torch
from test_fast_recipe import two_classes  # noqa: F401  a fixture

from idecode_core.training.fractals import _shares, fractals, pixmix


def test_fractals_follow_from_their_seed_and_none_is_a_flat_colour() -> None:
    pictures = fractals(300, seed=3)  # more than are made at once
    assert pictures.shape == (300, 3, 40, 40)
    assert pictures.dtype == torch.uint8
    assert torch.equal(pictures, fractals(300, seed=3))
    assert not torch.equal(pictures[:5], fractals(5, seed=4))
    spread = pictures.float().flatten(1).std(dim=1)
    assert (spread > 5).float().mean() > 0.95
    assert len({tuple(picture.flatten()[:200].tolist()) for picture in pictures}) == 300


def test_mixed_pictures_are_sums_or_products_with_a_piece_of_a_fractal_and_some_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = torch.rand(400, 3, 8, 8, generator=torch.Generator().manual_seed(0)) * 0.6 + 0.2
    flat = torch.full((1, 3, 8, 8), 153, dtype=torch.uint8)  # 0.6 everywhere: whatever piece is taken
    shares = np.full(400, 0.75), np.full(400, 0.25)
    monkeypatch.setattr("idecode_core.training.fractals._shares", lambda batch, generator: shares)
    mixed = pixmix(x, flat, 1, np.random.default_rng(0))
    added = (0.75 * (2 * x - 1) + 0.25 * (2 * 0.6 - 1) + 1) / 2
    product = (2 * x) ** 0.75 * (2 * 0.6) ** 0.25 / 2
    kinds = [(mixed - other.clamp(0, 1)).abs().flatten(1).amax(dim=1) < 1e-5 for other in (x, added, product)]
    assert torch.stack(kinds).any(dim=0).all()
    for kind, expected in zip(kinds, (0.5, 0.25, 0.25), strict=True):
        assert abs(kind.float().mean().item() - expected) < 4 * 0.5 / np.sqrt(400)
    assert torch.equal(pixmix(x, flat, 0, np.random.default_rng(0)), x)


def test_the_shares_of_two_mixed_pictures_are_pixmixs() -> None:
    a, b = _shares(20_000, np.random.default_rng(0))
    taken_away = b < 0
    assert abs(taken_away.mean() - 0.5) < 4 * 0.5 / np.sqrt(20_000)
    assert a[~taken_away].mean() == pytest.approx(3 / 4, abs=0.01)  # Beta(3, 1)
    assert b[~taken_away].mean() == pytest.approx(1 / 4, abs=0.01)  # Beta(1, 3)
    assert a[taken_away].mean() == pytest.approx(5 / 4, abs=0.01)
    assert b[taken_away].mean() == pytest.approx(-1 / 4, abs=0.01)
