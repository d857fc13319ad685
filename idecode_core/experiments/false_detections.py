"""The false detection rate of iD test points is bounded by epsilon on average (Fig. 1, App. C.1.2).

As in the paper, calibration sets of k points are sampled with replacement from the 5,000 held-out ones, five times;
and once more without replacement, which is what Theorem 1 speaks of. The exact law is drawn in.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from idecode_core.conformal import FalseDetectionLaw, observed_band
from idecode_core.conformal.calibration import aggregate_scores
from idecode_core.evaluation.methods import runs
from idecode_core.evaluation.rates import rates_in_bands
from idecode_core.experiments.results import Section
from idecode_core.experiments.tables import N, seeds
from idecode_core.folder.stored import Stored, open_all
from idecode_core.guarantees.observed import resampled_rates
from idecode_core.plots.style import CALIBRATION, ID, THRESHOLD
from idecode_core.plots.svg import Box, Line, chart, grid
from idecode_core.report.tables import table

KS = (1000, 1500, 2000, 2500, 3000, 3500, 4000)
EPSILONS = tuple(round(0.05 * i, 2) for i in range(1, 11))
REPEATS = 5
BAND = 0.99
SEED = 0


def box_plots(stored: Stored, replacement: bool) -> str:
    """One panel per k: a box per epsilon over the repeats, the exact band behind, the diagonal."""
    calibration = stored.calibration.scores(N)
    test = aggregate_scores(runs(stored.id_set.score_vectors, N)[0])
    panels = []
    for k in (k for k in KS if k <= calibration.size):
        generator = np.random.default_rng([SEED, k, int(replacement)])
        rates = resampled_rates(
            calibration,
            test,
            k=k,
            epsilons=EPSILONS,
            repeats=REPEATS,
            replacement=replacement,
            generator=generator,
        )
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
        rates = rates_in_bands(stored, N, EPSILONS)
        outside += sum(not rate.inside for rate in rates)
        rows.append([stored.name, *(f"{rate}{'' if rate.inside else ' **outside**'}" for rate in rates)])
    return table(["detector, n=5", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)], rows), outside


def false_detections(root: Path | str = "checkpoints") -> Section:
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
