"""`certify` on 10 million scores, with both thresholds, against NumPy's sort of the same scores.

    python -m benchmarks.certify

Prints one ratio, measured side by side in this run. Goal: at most 1.5. The time for p-values is told, without a goal.
"""

import time

import numpy as np

from benchmarks.p_values import seconds
from idecode_core.conformal.certify import certify

COUNT, REPEATS = 10_000_000, 5


def main() -> None:
    scores = np.random.default_rng(0).normal(size=COUNT)
    sorting, in_order = seconds(lambda: np.sort(scores), REPEATS)
    ours, thresholds = seconds(
        lambda: np.array([(c := certify(scores)).threshold(0.05), c.threshold(0.05, delta=0.1)]), REPEATS
    )
    start = time.perf_counter()
    certify(scores[:10_000]).p_values(scores)
    p_values = time.perf_counter() - start
    print(f"{COUNT:,} scores")
    print(f"numpy.sort                                  {sorting:8.3f} s")
    print(f"certify with two thresholds                 {ours:8.3f} s")
    print(f"ratio                                       {ours / sorting:8.2f} (goal: at most 1.5)")
    print(f"p-values of all of them against 10,000      {p_values:8.3f} s")
    print(f"the threshold is the J-th largest           {thresholds[0] in in_order[-COUNT // 20 - 1 :]!s:>8}")


if __name__ == "__main__":
    main()
