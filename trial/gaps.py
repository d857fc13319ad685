"""How often `conformal.dirty.contamination` warns, of dirty and of clean sets: `python -m trial.gaps`. Seeded; about a minute."""

from collections.abc import Callable

import numpy as np

from idecode_core.conformal.dirty import contamination

WORLDS_DIRTY, WORLDS_CLEAN, FAR = 300, 2_000, 8.0
"""Dirty sets are normal, and what does not belong lies FAR standard deviations out, with a spread of 1."""
CLEAN: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda generator, k: generator.random(k),
    "normal": lambda generator, k: generator.normal(size=k),
    "exponential": lambda generator, k: generator.exponential(size=k),
    "lognormal": lambda generator, k: generator.lognormal(size=k),
    "Cauchy": lambda generator, k: generator.standard_cauchy(k),
}


def rates(
    seed: int = 20_261_118, *, dirty: int = WORLDS_DIRTY, clean: int = WORLDS_CLEAN
) -> dict[str, float]:
    """The share of sets that are suspected, by what they hold."""
    generator, found = np.random.default_rng(seed), {}
    for strange, k in ((5, 100), (10, 300)):
        sets = [
            np.r_[generator.normal(size=k - strange), generator.normal(FAR, size=strange)]
            for _ in range(dirty)
        ]
        found[f"{strange} of {k} do not belong"] = float(
            np.mean([contamination(one).suspected for one in sets])
        )
    for name, draw in CLEAN.items():
        for k in (100, 300):
            found[f"{k} clean, {name}"] = float(
                np.mean([contamination(draw(generator, k)).suspected for _ in range(clean)])
            )
    return found


if __name__ == "__main__":
    for what, rate in rates().items():
        print(f"{what}: {rate:.4f}")
