"""The false detection rate of iD test points is bounded by epsilon on average (Fig. 1, App. C.1.2).

As in the paper, calibration sets of k points are sampled with replacement from the 5,000 held-out ones, five times;
and once more without replacement, which is what Theorem 1 speaks of. The exact law is drawn in.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from idecode_core.calibration import Calibration, aggregate_scores
from idecode_core.conformal import FalseDetectionLaw, FloatArray, p_values
from idecode_core.evaluation import runs
from idecode_core.experiments.results import Section, table
from idecode_core.experiments.stored import Stored, open_all
from idecode_core.experiments.tables import N, seeds
from idecode_core.metrics import false_detection_rate
from idecode_core.plots.style import CALIBRATION, ID, THRESHOLD
from idecode_core.plots.svg import Box, Line, chart, grid

KS = (1000, 1500, 2000, 2500, 3000, 3500, 4000)
EPSILONS = tuple(round(0.05 * i, 2) for i in range(1, 11))
REPEATS = 5
BAND = 0.99
SEED = 0


def sampled_rates(
    calibration_scores: FloatArray,
    test_scores: FloatArray,
    k: int,
    epsilons: Sequence[float],
    *,
    replacement: bool,
    generator: np.random.Generator,
    repeats: int = REPEATS,
) -> FloatArray:
    """False detection rates (repeats, epsilons) under calibration sets of k points sampled from those there are."""
    rates = np.empty((repeats, len(epsilons)))
    for repeat in range(repeats):
        chosen = generator.choice(calibration_scores.size, size=k, replace=replacement)
        p = p_values(calibration_scores[chosen], test_scores)
        rates[repeat] = [false_detection_rate(p, epsilon) for epsilon in epsilons]
    return rates


def observed_band(k: int, epsilon: float, points: int, level: float = BAND) -> tuple[float, float]:
    """Where the rate seen on `points` test points lies with probability `level`: BetaBinomial(points, J, k+1-J).

    The calibration set decides the true rate, Beta(J, k+1-J); the test points are then drawn. Exact without ties.

    >>> [round(rate, 3) for rate in observed_band(k=5000, epsilon=0.05, points=2500)]
    [0.037, 0.064]
    """
    law = FalseDetectionLaw(k, epsilon)
    if law.J == 0:
        return 0.0, 0.0
    counts = stats.betabinom(points, law.J, k + 1 - law.J)
    return float(counts.ppf((1 - level) / 2)) / points, float(counts.ppf((1 + level) / 2)) / points


def f_scores(stored: Stored, n: int = N) -> tuple[FloatArray, FloatArray]:
    """F(V) of the calibration points and of the iD test points (first run), in the same precision."""
    calibration = Calibration(stored.calibration.score_vectors.astype(np.float32))
    return calibration.scores(n), aggregate_scores(runs(stored.id_set.score_vectors, n)[0])


def box_plots(stored: Stored, replacement: bool) -> str:
    """One panel a k: a box an epsilon over the repeats, the exact band behind, the diagonal."""
    calibration, test = f_scores(stored)
    panels = []
    for k in (k for k in KS if k <= calibration.size):
        generator = np.random.default_rng([SEED, k, int(replacement)])
        rates = sampled_rates(calibration, test, k, EPSILONS, replacement=replacement, generator=generator)
        quantiles = np.quantile(rates, [0, 0.25, 0.5, 0.75, 1], axis=0).T  # (epsilons, 5)
        boxes = [
            Box(epsilon, (row[0], row[1], row[2], row[3], row[4]), ID)
            for epsilon, row in zip(EPSILONS, quantiles.tolist(), strict=True)
        ]
        bands = [observed_band(k, epsilon, test.size) for epsilon in EPSILONS]
        lines = [
            Line(
                f"{BAND:.0%} band",
                EPSILONS,
                [FalseDetectionLaw(k, epsilon).mean for epsilon in EPSILONS],
                CALIBRATION,
                low=[low for low, _ in bands],
                high=[high for _, high in bands],
            ),
            Line("epsilon", EPSILONS, EPSILONS, THRESHOLD, dash="4 3"),
        ]
        title = f"k = {k}, {'with' if replacement else 'without'} replacement"
        panels.append(
            chart(
                lines, boxes=boxes, title=title, x_title="epsilon", y_title="false detection rate", width=480
            )
        )
    return grid(panels, columns=2, width=480)


def rate_table(found: Sequence[Stored]) -> tuple[str, int]:
    """Each detector with its whole calibration set at every epsilon, and how many rates lie outside of their band."""
    rows, outside = [], 0
    for stored in found:
        calibration, test = f_scores(stored)
        p = p_values(calibration, test)
        cells = []
        for epsilon in EPSILONS:
            rate = false_detection_rate(p, epsilon)
            low, high = observed_band(calibration.size, epsilon, test.size)
            inside = low <= rate <= high
            outside += not inside
            cells.append(
                f"{100 * rate:.1f} [{100 * low:.1f}, {100 * high:.1f}]{'' if inside else ' **outside**'}"
            )
        rows.append([stored.name, *cells])
    return table(["detector, n=5", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)], rows), outside


def fdr(root: Path | str = "checkpoints") -> Section:
    """Box plots of resampled calibration sets, and every detector's rate with its exact band."""
    found = open_all(root, names=tuple(sorted(path.parent.name for path in Path(root).glob("*/config.json"))))
    shown = next((stored for stored in found if stored.name == "cifar10-projective"), found[0])
    grid_of_rates, outside = rate_table(found)
    verdict = (
        "Every rate lies inside its exact band."
        if outside == 0
        else f"{outside} of {len(found) * len(EPSILONS)} rates lie outside of their band; "
        f"{(1 - BAND) * len(found) * len(EPSILONS):.1f} are expected to."
    )
    body = (
        f"{seeds(shown)} The resampling has seed {SEED}.\n\n"
        f"Figures: `{shown.name}` at n={N}; boxes show the lowest, the quartiles and the highest of {REPEATS} calibration "
        f"sets. The grey band holds the rate seen on {len(shown.id_set):,} test points in {BAND:.0%} of all pairs of "
        "calibration and test sets, by the exact law BetaBinomial(points, J, k+1-J): single sets do exceed epsilon, the "
        "mean does not. The paper samples with replacement; Theorem 1 speaks of distinct points, so the same is shown "
        f"without. The {REPEATS} sets share one pool and one test set, so a panel's boxes lie to one side together.\n\n"
        f"Each detector with all of its calibration points, in percent, beside the {BAND:.0%} band:\n\n"
        f"{grid_of_rates}\n\n{verdict}"
    )
    figures = {
        "false-detections-with-replacement.svg": box_plots(shown, True),
        "false-detections-without-replacement.svg": box_plots(shown, False),
    }
    return Section("fdr", "The false detection rate is bounded by epsilon", body, figures)
