"""AUROC and TNR as n = |V(x)| grows from 1 to 20 (Fig. 2, App. C.1.2).

The false detection rate of iD test points is bounded by epsilon on average (Fig. 1, App. C.1.2).

As in the paper, calibration sets of k points are sampled with replacement from the 5,000 held-out ones, five times;
and once more without replacement, which is what Theorem 1 speaks of. The exact law is drawn in.

Smoothed p-values beside plain ones, of which the paper says that they give essentially the same results (after Theorem 1).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

from idecode_core.conformal import FalseDetectionLaw, observed_band, p_values, smoothed_p_values
from idecode_core.conformal.calibration import aggregate_scores
from idecode_core.conformal.observed import resampled_rates
from idecode_core.folder.stored import Stored, open_all
from idecode_core.plots.style import CALIBRATION, ID, OOD, OTHERS, THRESHOLD
from idecode_core.plots.svg import Box, Line, chart, grid
from idecode_core.quality.methods import Evaluation, Metric, evaluate_sets, runs
from idecode_core.quality.metrics import auroc
from idecode_core.report.tables import beside_the_paper, fpr, interval, percent, table
from paper.results import Section
from paper.tables import N, printed, rate_table, seeds

NS = tuple(range(1, 21))
SHOWN = (1, 2, 5, 10, 20)
COLOURS = (OOD, ID, THRESHOLD, *OTHERS, CALIBRATION)
TITLES = {"auroc": "AUROC", "tnr": "TNR at 90 % TPR"}
Which = Literal["auroc", "tnr"]
SURE: dict[Which, tuple[str, Callable[[Evaluation], str]]] = {
    "auroc": ("95 % interval", interval),
    "tnr": ("FPR95", fpr),
}
"""What stands beside the metric, and how it is written."""


def every_detector(root: Path | str) -> list[Stored]:
    """All that have stored scores, of pictures and of sounds, by name."""
    return open_all(root, names=tuple(sorted(path.parent.name for path in Path(root).glob("*/config.json"))))


def versus_n(root: Path | str, which: Which) -> Section:
    parts, figures = [], {}
    words, said = SURE[which]
    for stored in open_all(root):
        by_n = [evaluate_sets(stored.calibration, stored.id_set, stored.ood_sets, n) for n in NS]
        lines, rows, pairs, rising = [], [], [], 0
        for i, ood_set in enumerate(stored.ood_sets):
            metrics: list[Metric] = [getattr(evaluations[i], which) for evaluations in by_n]
            means, low, high = (
                [100 * (metric.mean + side * metric.spread) for metric in metrics] for side in (0, -1, 1)
            )
            lines.append(Line(ood_set.label, NS, means, COLOURS[i % len(COLOURS)], low=low, high=high))
            rows.append([ood_set.label, *(percent(metrics[n - 1]) for n in SHOWN), said(by_n[-1][i])])
            rising += means[-1] > means[0]
            if theirs := printed(stored, ood_set, n=NS[-1], metric=which):
                pairs.append((ood_set.label, means[-1], theirs.mean))
        figures[f"{which}-vs-n-{stored.name}.svg"] = chart(
            lines, title=stored.name, x_title="n, the number of draws", y_title=TITLES[which], width=720
        )
        sentence = f"n=20 is above n=1 on {rising} of {len(rows)} sets."
        parts.append(
            f"### {stored.name}\n\n{seeds(stored)}\n\n"
            f"{table(['OOD set', *(f'n={n}' for n in SHOWN), f'{words}, n={NS[-1]}'], rows)}\n\n"
            f"{sentence} {beside_the_paper(pairs, f'{TITLES[which]} at n=20')}"
        )
    return Section(f"{which}-vs-n", f"{TITLES[which]} as n grows", "\n\n".join(parts), figures)


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


def false_detections(root: Path | str = "checkpoints") -> Section:
    """Box plots of resampled calibration sets, and every detector's rate with its exact band."""
    detectors = every_detector(root)
    shown = next((stored for stored in detectors if stored.name == "cifar10-projective"), detectors[0])
    grid_of_rates, outside = rate_table(detectors, N, EPSILONS)
    verdict = (
        "Every rate lies inside its exact band."
        if outside == 0
        else f"{outside} of {len(detectors) * len(EPSILONS)} rates lie outside of their band; "
        f"{(1 - BAND) * len(detectors) * len(EPSILONS):.1f} are expected to."
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
    return Section("false-detections", "The false detection rate is bounded by epsilon", body, figures)


EPSILON = 0.05


def smoothed(root: Path | str = "checkpoints") -> Section:
    """Of every detector: plain and smoothed p-values of the same scores, at n = 5."""
    rows, farthest, changed, points = [], 0.0, 0, 0
    for stored in every_detector(root):
        calibration = stored.calibration.scores(N)
        sets = (stored.id_set, *stored.ood_sets)
        scores = [aggregate_scores(runs(score_set.score_vectors, N)[0]) for score_set in sets]
        plain = [p_values(calibration, of_set) for of_set in scores]
        smooth = [
            smoothed_p_values(calibration, of_set, generator=np.random.default_rng([SEED, i]))
            for i, of_set in enumerate(scores)
        ]
        rates = [100 * float((inside < EPSILON).mean()) for inside, *_ in (plain, smooth)]
        areas = [
            100 * float(np.mean([auroc(-inside, -strange) for strange in outside]))
            for inside, *outside in (plain, smooth)
        ]
        verdicts, others = (np.concatenate(kind) < EPSILON for kind in (plain, smooth))
        differ = int((verdicts != others).sum())
        farthest = max(farthest, abs(areas[1] - areas[0]))
        changed, points = changed + differ, points + len(verdicts)
        numbers = [f"{number:.1f}" for number in (*rates, *areas)]
        rows.append([stored.name, f"{stored.calibration.k:,}", *numbers, f"{differ} of {len(verdicts):,}"])
    titles = ["detector, n=5", "k", "false detections, plain", "smoothed"]
    titles += ["AUROC plain", "AUROC smoothed", "other verdicts"]
    body = (
        f"The mean AUROC of p-values over a detector's OOD sets, the false detection rate at epsilon = {EPSILON:g} in "
        "percent, and of how many points, iD and OOD together, the verdict differs. Smoothing has seed "
        f'{SEED}.\n\n{table(titles, rows)}\n\nThe paper says "essentially the same": here the mean AUROC moves by at most '
        f"{farthest:.2f} points, and {changed:,} of {points:,} verdicts change."
    )
    return Section("smoothed", "Smoothed p-values beside plain ones", body)
