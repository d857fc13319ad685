"""PixMix (Hendrycks et al. 2022, arXiv 2112.05135): pictures mixed with fractals, so that structure that belongs to no class is
no evidence for one. The fractals are made here, from a seed; no picture of any dataset is in them.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SIDE = 40
WALKERS, STEPS, SETTLED = 64, 200, 20
MAPS, TOGETHER = 5, 256
BETA = 3.0
"""The shares of two mixed pictures come from Beta(3, 1) and Beta(1, 3), as in PixMix."""


def fractals(count: int, *, seed: int) -> Tensor:
    """`count` pictures, the same for the same seed: (count, 3, 40, 40), uint8."""
    starts = range(0, count, TOGETHER)
    return torch.cat(
        [_fractals(min(TOGETHER, count - at), np.random.default_rng([seed, at])) for at in starts]
    )


def _fractals(count: int, generator: np.random.Generator) -> Tensor:
    """Attractors of random iterated function systems, in colour.

    Each has two to five affine maps that shrink, and whose images together nearly fill it. Many points walk through it at once; each map has a colour, a point's colour
    goes half-way to that of the map it took, and a pixel shows the mean colour of its points, the brighter the more there were.
    """
    maps = generator.integers(2, MAPS + 1, size=count)  # how many each has
    area = (
        generator.uniform(0.7, 1.0, size=(count, 1)) / maps[:, None]
    )  # what a map leaves of an area: they nearly fill it
    long = np.sqrt(area) * generator.uniform(1, 0.95 / np.sqrt(area), size=(count, MAPS))
    stretch = np.stack([long, area / long], axis=-1)  # (count, maps, 2): singular values
    matrices = _turns(count, generator) * stretch[:, :, None] @ _turns(count, generator)
    shifts = generator.uniform(-1, 1, size=(count, MAPS, 2))
    colours = generator.uniform(0, 1, size=(count, MAPS, 3))
    point = np.zeros((count, WALKERS, 2))
    colour = np.full((count, WALKERS, 3), 0.5)
    fractal = np.arange(count)[:, None]
    points, shades = [], []
    for step in range(STEPS + SETTLED):
        taken = (generator.random((count, WALKERS)) * maps[:, None]).astype(np.int64)  # (count, walkers)
        point = np.einsum("fwij,fwj->fwi", matrices[fractal, taken], point) + shifts[fractal, taken]
        colour = (colour + colours[fractal, taken]) / 2
        if step >= SETTLED:
            points.append(point.astype(np.float32))
            shades.append(colour.astype(np.float32))
    return _drawn(np.stack(points, axis=1), np.stack(shades, axis=1), generator)


def _turns(count: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Random rotations (count, maps, 2, 2)."""
    angle = generator.uniform(0, 2 * np.pi, size=(count, MAPS))
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)


def _drawn(
    points: NDArray[np.float32], colours: NDArray[np.float32], generator: np.random.Generator
) -> Tensor:
    """Points (count, steps, walkers, 2) with colours as pictures (count, 3, 40, 40)."""
    count = len(points)
    flat = points.reshape(count, -1, 2)
    low, high = np.quantile(flat, [0.01, 0.99], axis=1)[:, :, None]  # (count, 1, 2) each
    place = ((flat - low) / np.maximum(high - low, 1e-6) * SIDE).clip(0, SIDE - 1).astype(np.int64)
    cell = (place[..., 0] * SIDE + place[..., 1]) + np.arange(count)[:, None] * SIDE**2
    hits = np.bincount(cell.ravel(), minlength=count * SIDE**2).astype(np.float64)
    mean = np.stack(
        [
            np.bincount(cell.ravel(), colours[..., c].ravel(), minlength=count * SIDE**2)
            / np.maximum(hits, 1)
            for c in range(3)
        ]
    ).reshape(3, count, SIDE, SIDE)
    light = np.log1p(hits).reshape(count, SIDE, SIDE)
    light /= light.max(axis=(1, 2), keepdims=True)
    ground = generator.uniform(0, 1, size=(3, count, 1, 1))
    shown = ground + light**0.5 * (mean - ground)  # (3, count, 40, 40)
    return torch.from_numpy((shown.transpose(1, 0, 2, 3) * 255).round().astype(np.uint8))


def pixmix(x: Tensor, pictures: Tensor, rounds: int, generator: np.random.Generator) -> Tensor:
    """x (batch, 3, h, w) in [0, 1], each mixed up to `rounds` times with a random piece of one of `pictures`, by sums or by
    products; some are left as they are."""
    batch, _, h, w = x.shape
    times = torch.from_numpy(generator.integers(0, rounds + 1, size=batch))
    for done in range(rounds):
        chosen = torch.from_numpy(generator.integers(len(pictures), size=batch))
        top, left = (int(generator.integers(pictures.shape[-1] - side + 1)) for side in (h, w))
        other = pictures[chosen][..., top : top + h, left : left + w].to(x.device).float() / 255
        if generator.random() < 0.5:
            other = other.flip(-1)
        a, b = (
            torch.from_numpy(share).float().to(x.device)[:, None, None, None]
            for share in _shares(batch, generator)
        )
        added = (a * (2 * x - 1) + b * (2 * other - 1) + 1) / 2
        product = (2 * x).clamp(min=1e-6) ** a * (2 * other).clamp(min=1e-2) ** b / 2
        adds = torch.from_numpy(generator.random(batch) < 0.5).to(x.device)[:, None, None, None]
        mixed = torch.where(adds, added, product).clamp(0, 1)
        x = torch.where((times > done).to(x.device)[:, None, None, None], mixed, x)
    return x


def _shares(batch: int, generator: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How much of each of two pictures: both add up to about one, or the second is taken away from the first."""
    large, small = generator.beta(BETA, 1, size=batch), generator.beta(1, BETA, size=batch)
    more, less = 1 + generator.beta(1, BETA, size=batch), -generator.beta(1, BETA, size=batch)
    sums = generator.random(batch) < 0.5
    return np.where(sums, large, more), np.where(sums, small, less)
