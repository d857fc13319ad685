"""Ours beside nonconform, in random worlds: `python -m trial.beside_nonconform`, in an environment of Python 3.12 or later with both.

nonconform needs Python 3.12, and the tests run on 3.11 too; so this is run by hand, and docs/guarantees.md has what it printed.
"""

from collections.abc import Iterator

import numpy as np
from nonconform.fdr import (  # type: ignore[import-not-found]
    conformal_e_values,
    e_value_false_discovery_control,
    weighted_false_discovery_control_from_arrays,
)
from nonconform.martingales import (  # type: ignore[import-not-found]
    PowerMartingale,
    SimpleJumperMartingale,
)
from nonconform.scoring import calculate_p_val, calculate_weighted_p_val  # type: ignore[import-not-found]

from idecode_core.conformal import p_values
from idecode_core.conformal.evidence import derandomised_e_values, e_benjamini_hochberg
from idecode_core.conformal.streams import log_power, log_simple_jumper
from idecode_core.conformal.weighted import weighted_p_values, weighted_selection

WORLDS = 100


def differences(generator: np.random.Generator) -> Iterator[tuple[str, float]]:
    """The largest difference of each function in one world; of verdicts, the share that differs."""
    k, m, runs, q = 200, 30, 5, 0.1
    known, new = generator.normal(size=k), generator.normal(size=m) + 3.5 * (np.arange(m) < 8)
    w, v = generator.exponential(size=k), generator.exponential(size=m)
    p = weighted_p_values(known, w, new, v)
    yield "p-values", _largest(p_values(known, new), calculate_p_val(new, known))
    yield "weighted p-values", _largest(p, calculate_weighted_p_val(new, known, v, w))
    theirs = weighted_false_discovery_control_from_arrays(
        p_values=p, test_scores=new, calib_scores=known, test_weights=v, calib_weights=w, alpha=2 * q
    )
    yield "weighted selection", float(np.mean(weighted_selection(known, w, new, v, 2 * q) != theirs))
    sides = known + generator.normal(size=(runs, k)) / 2, new + generator.normal(size=(runs, m)) / 2
    ours, others = derandomised_e_values(*sides, q), conformal_e_values(sides[1], sides[0], alpha_bh=q)
    yield "e-values", _largest(ours, others)
    flagged = e_value_false_discovery_control(ours, alpha=2 * q)
    yield "e-BH", float(np.mean(e_benjamini_hochberg(ours, 2 * q) != flagged))
    stream = 1 - generator.random(100) ** 1.2
    for name, martingale, log_path in (
        ("power martingale", PowerMartingale(0.5), log_power),
        ("simple jumper", SimpleJumperMartingale(0.01), log_simple_jumper),
    ):
        path = [state.log_martingale for state in martingale.update_many(stream)]
        yield f"log of the {name}", _largest(log_path(stream), np.array(path))


def _largest(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.max(np.abs(one - other)))


def main() -> None:
    generator, most, worlds = np.random.default_rng(0), {}, {}
    for _ in range(WORLDS):
        for name, difference in differences(generator):
            most[name] = max(difference, most.get(name, 0.0))
            worlds[name] = worlds.get(name, 0) + (difference > 1e-12)
    for name, difference in most.items():
        print(f"{name}: at most {difference:.2g}, above 1e-12 in {worlds[name]:,} of {WORLDS:,} worlds")


if __name__ == "__main__":
    main()
