"""p-values of 26,032 test points (SVHN's test set) against 5,000 calibration points: ours against crepes' batch.

    python -m benchmarks.p_values

Prints one ratio, measured side by side in this run, and whether the two results are equal. Goal: at least 100.
"""

import time
from collections.abc import Callable

import numpy as np
from crepes.base import p_values_batch

from idecode_core.conformal import p_values

K, TESTS = 5_000, 26_032


def seconds(function: Callable[[], np.ndarray], repeats: int) -> tuple[float, np.ndarray]:
    """The fastest of `repeats` runs, and the result."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def main() -> None:
    generator = np.random.default_rng(0)
    # Rounded, so that ties occur and a wrong comparison would show.
    calibration = generator.normal(size=K).round(3)
    test = generator.normal(loc=1.0, size=TESTS).round(3)
    theirs, their_p = seconds(lambda: p_values_batch(calibration, test, smoothing=False), repeats=2)
    ours, our_p = seconds(lambda: p_values(calibration, test), repeats=20)
    print(f"{TESTS:,} tests against {K:,} calibration points")
    print(f"crepes.base.p_values_batch    {theirs * 1e3:8.1f} ms")
    print(f"idecode_core p_values         {ours * 1e3:8.1f} ms")
    print(f"ratio                         {theirs / ours:8.0f} (goal: at least 100)")
    print(f"equal results                 {np.array_equal(their_p, our_p)!s:>8}")


if __name__ == "__main__":
    main()
